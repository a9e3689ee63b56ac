"""The examples run, and print the expected output."""

import importlib.util
import os
import re
import shutil
import sys

import pytest

from tests.programs import ROOT, execute, quiet

needs_compiler = pytest.mark.skipif(shutil.which(os.environ.get("CC", "cc")) is None, reason="there is no C compiler")
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")

#: What each example prints.
PRINTED = {
    "own_in_python": (
        "a child wrote: [ 0  1  4  9 16 25 36 49 64 81]\n"
        "and the sum of its halves is 500000.0\n"
        "arrays in shared memory: 2\n"
    ),
    "own_in_c": (
        "[ 0  1  4  9 16 25 36 49 64 81] at a multiple of 64 bytes: True\n"
        "mean and deviation: 0.0 1.0\n"
        "allocations and frees are even: True and more than 5: True\n"
    ),
    "own_in_numba": "requests of at least 800000 bytes: 2 - and y[-1] is 199999.0\n",
    "scratch_of_tasks": (
        "the strongest frequencies: [100, 101, 102, 103]\n"
        "buffers: 4\n"
        "another buffer: True - and the last step is 499.5\n"
    ),
}

#: What those that measure print, with a number for every time.
MEASURED = {
    "richardson_lucy": (
        ("--size", "48", "--steps", "2", "--rounds", "2"),
        (
            "48 x 48 pixels, milliseconds per step:\n"
            "             plainly: #\n"
            "   in scratch memory: #\n"
            "        kept by hand: #\n"
            "the results are bitwise identical: True\n"
        ),
    ),
    "climate_on_dask": (
        ("--years", "2", "--cells", "16", "--rounds", "1"),
        (
            "730 x 8 x 16 days and cells, 1 MiB, seconds per round:\n"
            "  NumPy's own memory: #\n"
            "         ArrayMemory: #\n"
            "the same hot days, #%: True\n"
        ),
    ),
}


def printed(name: str, *arguments: str) -> str:
    flags = [] if "dask" in name else ["-X", "dev", "-W", "error"]  # there it would be others' warnings
    return quiet(execute(sys.executable, *flags, ROOT / "examples" / f"{name}.py", *arguments))


@pytest.mark.parametrize(
    "name",
    [
        "own_in_python",
        pytest.param("own_in_c", marks=needs_compiler),
        pytest.param("own_in_numba", marks=needs_numba),
        "scratch_of_tasks",
    ],
)
def test_example(name: str) -> None:
    assert printed(name) == PRINTED[name]


@pytest.mark.parametrize("name", MEASURED)
def test_example_that_measures(name: str) -> None:
    if "dask" in name:
        pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    arguments, expected = MEASURED[name]
    assert re.sub(r"\d+\.\d+", "#", printed(name, *arguments)) == expected


def test_every_example_is_run() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == {*PRINTED, *MEASURED}

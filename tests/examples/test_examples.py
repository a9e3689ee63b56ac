"""The examples run, and print the expected output."""

import os
import re
import shutil
import sys

import pytest

from tests.programs import ROOT, execute, quiet

#: What each example prints; of those that measure with # for every time.
EXAMPLES = {
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
    "richardson_lucy": (
        "48 x 48 pixels, milliseconds per step:\n"
        "             plainly: #\n"
        "   in scratch memory: #\n"
        "        kept by hand: #\n"
        "the results are bitwise identical: True\n"
    ),
    "climate_on_dask": (
        "730 x 8 x 16 days and cells, 1 MiB, seconds per round:\n"
        "  NumPy's own memory: #\n"
        "         ArrayMemory: #\n"
        "the same hot days, #%: True\n"
    ),
}
ARGUMENTS = {
    "richardson_lucy": "--size 48 --steps 2 --rounds 2",
    "climate_on_dask": "--years 2 --cells 16 --rounds 1",
}
NEEDED = {"own_in_numba": "numba", "climate_on_dask": "distributed"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    if name == "own_in_c" and shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("there is no C compiler")
    arguments, expected = ARGUMENTS.get(name, "").split(), EXAMPLES[name]
    flags = [] if "dask" in name else ["-X", "dev", "-W", "error"]  # there it would be others' warnings
    printed = quiet(execute(sys.executable, *flags, ROOT / "examples" / f"{name}.py", *arguments))
    assert (re.sub(r"\d+\.\d+", "#", printed) if "#" in expected else printed) == expected


def test_every_example_is_run() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == EXAMPLES.keys()

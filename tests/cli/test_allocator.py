"""`firsttouch run --allocator EXPRESSION`: the expression of Python, checked before the program starts."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import firsttouch as ft

from .conftest import Start

Write = Callable[[str, str], Path]

POOL = repr(ft.pool())

PROGRAM = """
import numpy as np
import firsttouch as ft
array = np.ones(1 << 20)
for _ in range(10):
    array = array + 1
print(ft.get_allocator(), float(array.sum()) == 11 * (1 << 20))
"""

CHILDREN = """
import multiprocessing, sys

def work(number):
    import numpy as np, firsttouch as ft
    return repr(ft.get_allocator(np.ones(1 << 20)))

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(*set(pool.map(work, range(4))))
"""


def report(done: subprocess.CompletedProcess[str], path: Path) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("pool(decay=30)", repr(ft.pool(decay=30))),
        ("pages", "pages(huge=False)"),
        ("ft.mimalloc", "mimalloc()"),
        ("jemalloc()", "jemalloc()"),
        ("tracked(limited(pool, '4 GiB'))", f"tracked(limited({POOL}, '4 GiB'))"),
        ("filled(malloc, on_free=0)", "filled(malloc(), on_allocate=255, on_free=0)"),
    ],
)
def test_it_serves_and_the_report_names_it(
    firsttouch: Start, write: Write, tmp_path: Path, expression: str, shown: str
) -> None:
    write("program.py", PROGRAM)
    done = firsttouch("run", "--json", "out.json", "--allocator", expression, "program.py")
    assert done.stdout == f"{shown} True\n"
    found = report(done, tmp_path / "out.json")
    assert found["allocator"] == shown
    assert found["pooled"]
    assert f"\n  allocator      {shown}\n" in done.stderr


def test_the_default_goes_unnamed(firsttouch: Start, write: Write, tmp_path: Path) -> None:
    write("program.py", PROGRAM)
    done = firsttouch("run", "--json", "out.json", "program.py")
    assert report(done, tmp_path / "out.json")["allocator"] is None
    assert "allocator" not in done.stderr


@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver"])
def test_children_have_it_too(firsttouch: Start, write: Write, kind: str) -> None:
    write("program.py", CHILDREN)
    done = firsttouch("run", "-q", "--allocator=tracked(pages)", "program.py", kind)
    assert (done.stdout, done.stderr) == ("tracked(pages(huge=False))\n", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--allocator", "mimaloc"], "no allocator 'mimaloc' (did you mean mimalloc?)"),
        (["--allocator", "tcmalloc"], "no allocator 'tcmalloc' is built in (tcmalloc is loaded by LD_PRELOAD, and"),
        (["--allocator", "pages(huge=thp)"], 'thp is not in quotes: write huge="thp"'),
        (["--allocator", "pool("], "'(' is never closed, at character 5"),
        (["--allocator", ""], "the allocator expression is empty"),
        (["--allocator", "pool(decai=3)"], "pool() takes no decai (did you mean decay?)"),
        (["--allocator", "limited(pool(), 0)"], "budget=0"),
        (["--allocator", "malloc()"], "install() cannot take malloc()"),
        (["--allocator", "numpy_default"], "install() cannot take numpy_default()"),
        (["--allocator", "__import__('os').abort()"], "is not an allocator expression"),
        (["--allocator", "aligned(4)\nx"], "is not an allocator expression"),
        (["--alocator", "pool"], "did you mean --allocator?"),
        (["--allocator", "pool", "--decay", "3"], "--decay is for the default pool; with --allocator write it as"),
        (["--max-idle", "3", "--allocator", "pool"], "--max-idle is for the default pool"),
    ],
)
def test_a_wrong_one_is_one_line_and_nothing_runs(
    firsttouch: Start, write: Write, options: list[str], said: str
) -> None:
    write("program.py", "print('it ran')")
    done = firsttouch("run", *options, "program.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("firsttouch: run: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_a_run_inside_a_run_takes_its_own(firsttouch: Start, write: Write) -> None:
    write("program.py", PROGRAM)
    inner = "from firsttouch.tools.cli.main import main; main(['run', {}'program.py'])"
    outer = "run", "-q", "--allocator", "pages"
    assert firsttouch(*outer, "-c", inner.format("")).stdout == "pages(huge=False) True\n"
    other = inner.format("'--allocator', 'jemalloc', ")
    assert firsttouch(*outer, "-c", other).stdout == "jemalloc() True\n"
    pooled = firsttouch(*outer, "-c", inner.format("'--decay', '5', ")).stdout
    assert pooled == f"{ft.pool(decay=5)!r} True\n"
    by_pool = firsttouch("run", "-q", "--decay", "5", "-c", inner.format("'--allocator', 'pool', ")).stdout
    assert by_pool == f"{POOL} True\n"


def test_help_shows_an_example(firsttouch: Start) -> None:
    assert "firsttouch run --allocator mimalloc script.py" in firsttouch("run", "--help").stdout


@pytest.mark.parametrize("first", ["ft.install()", "ft.zeros(3)", "ft.use().__enter__()", "ft.malloc().ones(3)"])
def test_a_program_that_knows_us_before_numpy(firsttouch: Start, first: str) -> None:
    """NumPy's first import installs, in the middle of what asked for NumPy."""
    done = firsttouch("run", "-q", "-c", f"import firsttouch as ft; {first}; print(ft.is_installed())", timeout=60)
    assert (done.stdout, done.stderr) == ("True\n", "")


#: One element behind an array of 800,000 bytes, which meets the guard; one byte behind one whose size leaves a gap.
BEYOND = (
    "import ctypes\nimport numpy as np\na = np.zeros({shape})\nctypes.memset(a.ctypes.data, 1, a.nbytes + {more})\n"
)


def test_guarded_names_the_line_and_the_array(firsttouch: Start, write: Write) -> None:
    script = write("over.py", BEYOND.format(shape="100_000", more=8))
    done = firsttouch("run", "-q", "--allocator", "guarded()", script)
    assert done.returncode == -signal.SIGSEGV
    assert "firsttouch: out of bounds: wrote right behind an array of 800000 bytes (SIGSEGV)\n" in done.stderr
    assert f'File "{script}", line 4 in <module>' in done.stderr


def test_guarded_names_at_the_end_what_met_no_guard(firsttouch: Start, write: Write) -> None:
    script = write("over.py", BEYOND.format(shape="20_001, np.uint8", more=1))
    done = firsttouch("run", "-q", "--allocator", "guarded()", script)
    assert done.returncode == 0
    assert done.stderr == "firsttouch: out of bounds: something wrote right behind an array of 20001 bytes\n"

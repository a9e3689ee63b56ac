"""`firsttouch run --allocator EXPRESSION --limit SIZE`: what serves the program, its children and runs inside it."""

import json
import signal
from pathlib import Path

import pytest

import firsttouch as ft

from .conftest import Start, Write

POOL = repr(ft.pool())

PROGRAM = """
import numpy as np
import firsttouch as ft
array = np.ones(1 << 20)
for _ in range(10):
    array = array + 1
print(ft.get_allocator(), float(array.sum()) == 11 * (1 << 20))
"""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], POOL),
        (["--allocator", "pages"], "pages()"),
        (["--allocator=filled(limited(pool, '4 GiB'))"], f"filled(limited({POOL}, '4 GiB'))"),
        (["--allocator", "filled(malloc, on_free=0)"], "filled(malloc(), on_free=0)"),
        (["--limit=1GiB", "--allocator", "pool(decay=5)"], f"limited({ft.pool(decay=5)!r}, '1 GiB')"),
        (["--limit", "AUTO", "--allocator", "ft.mimalloc"], "limited(mimalloc(), at_most="),
    ],
)
def test_it_serves_and_the_report_names_it(
    firsttouch: Start, write: Write, tmp_path: Path, words: list[str], shown: str
) -> None:
    write("program.py", PROGRAM)
    done = firsttouch("run", "--json", "out.json", *words, "program.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(shown)
    assert done.stdout.endswith(" True\n")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["pooled"]
    assert (found["allocator"] or "").startswith(shown if words else "")  # the process's own goes without saying
    assert ("\n  allocator      " in done.stderr) == bool(words)
    assert not words or f"\n  allocator      {shown}" in done.stderr


def test_beyond_a_limit_the_error_names_the_lines(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import numpy as np\na = []\nwhile True:\n    a.append(np.ones(3 << 20, 'u1'))\n"
    )
    for words in (["--limit", "20 MiB"], ["--allocator", "limited(pool(), '20 MiB')"]):
        finished = firsttouch("run", *words, "model.py")
        assert finished.returncode == 1
        shown = finished.stderr
        assert "MemoryError: Unable to allocate 3.00 MiB" in shown
        assert "limited() allows 20 MiB, of which 18 MiB are in use (2 MiB are left)" in shown
        assert f"      18.0 MiB  {tmp_path}/model.py:4 (6 blocks)" in shown
        _, _, last = shown.partition("  last failure   ")
        assert "18 MiB are in use (2 MiB are left)" in " ".join(last.split())


def test_a_run_inside_a_run_takes_its_own(firsttouch: Start, write: Write) -> None:
    write("program.py", PROGRAM)
    inner = "from firsttouch.tools.cli.main import main; main(['run', {}'program.py'])"
    for outer, own, shown in [
        (("--allocator", "pages"), "", POOL),
        (("--allocator", "pages"), "'--allocator', 'pool(decay=5)', ", repr(ft.pool(decay=5))),
    ]:
        assert firsttouch("run", "-q", *outer, "-c", inner.format(own)).stdout == f"{shown} True\n"


@pytest.mark.parametrize("first", ["ft.install()", "ft.zeros(3)"])
def test_a_program_that_knows_us_before_numpy(firsttouch: Start, first: str) -> None:
    """NumPy's first import installs, in the middle of what asked for NumPy."""
    done = firsttouch("run", "-q", "-c", f"import firsttouch as ft; {first}; print(ft.is_installed())", timeout=60)
    assert (done.stdout, done.stderr) == ("True\n", "")


BEYOND = "import ctypes\nimport numpy as np\na = np.zeros({})\nctypes.memset(a.ctypes.data, 1, a.nbytes + 8)\n"


@pytest.mark.parametrize(
    ("size", "status", "said"),
    [
        ("100_000", -signal.SIGSEGV, "wrote right behind an array of 800000 bytes (SIGSEGV)\n"),  # it met the guard
        ("20_001, 'u1'", 0, "something wrote right behind an array of 20001 bytes\n"),  # it met none; at the end
    ],
)
def test_guarded_names_the_array_and_the_line(
    firsttouch: Start, write: Write, size: str, status: int, said: str
) -> None:
    script = write("over.py", BEYOND.format(size))
    done = firsttouch("run", "-q", "--allocator", "guarded()", script)
    assert done.returncode == status
    assert f"firsttouch: out of bounds: {said}" in done.stderr
    assert (f'File "{script}", line 4 in <module>' in done.stderr) == bool(status)

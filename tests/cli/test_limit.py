"""`firsttouch run --limit`: a budget on the arrays of a program."""

import json
from pathlib import Path

import pytest

import firsttouch as ft
from tests.cli.conftest import Start

PROGRAM = "import numpy as np; a = [np.ones(1 << 20, np.uint8) for _ in range(5)]"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--limit", "1GiB"], f"limited({ft.pool()!r}, '1 GiB')"),
        (["--limit", "auto"], f"limited({ft.pool()!r}, 'auto', at_most="),
        (["--limit=1GiB", "--decay", "5"], f"limited({ft.pool(decay=5)!r}, '1 GiB')"),
        (["--limit", "AUTO", "--allocator", "mimalloc"], "limited(mimalloc(), 'auto', at_most="),
    ],
)
def test_a_budget_on_any_allocator(firsttouch: Start, tmp_path: Path, words: list[str], shown: str) -> None:
    finished = firsttouch("run", "-q", "--json", "report.json", *words, "-c", PROGRAM)
    assert (finished.returncode, finished.stderr) == (0, "")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["allocator"].startswith(shown)
    assert report["pooled"]


def test_beyond_it_the_error_names_the_lines(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import numpy as np\na = []\nwhile True:\n    a.append(np.ones(3 << 20, 'u1'))\n"
    )
    finished = firsttouch("run", "--limit", "20 MiB", "model.py")
    assert finished.returncode == 1
    shown = finished.stderr
    assert "MemoryError: Unable to allocate 3.00 MiB" in shown
    assert "limited() allows 20 MiB, of which 18 MiB are in use (2 MiB are left)" in shown
    assert f"      18.0 MiB  {tmp_path}/model.py:4 (6 arrays, the largest has 3.0 MiB)" in shown
    [last] = [line for line in shown.splitlines() if line.strip().startswith("last failure")]
    assert last.endswith("are left)")


def test_a_budget_in_an_expression_explains_itself_as_well(firsttouch: Start) -> None:
    code = "import numpy as np; np.ones(1 << 21, np.uint8)"
    finished = firsttouch("run", "-q", "--allocator", "limited(pool(), '1 MiB')", "-c", code)
    assert finished.returncode == 1
    assert "\ncannot allocate 2 MiB: limited() allows 1 MiB" in finished.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "0", "-c", "0"], "run: --limit: 0 bytes would serve no array"),
        (["--limit", "1000", "-c", "0"], "1,000 bytes would serve no array, as those of 16 KiB and more are counted"),
        (["--limit", "lots", "-c", "0"], 'run: --limit: "lots" is not a size'),
        (["--limit", "auto", "/bin/true"], "run: --limit is for Python programs, and /bin/true is not one\n"),
    ],
)
def test_what_is_no_budget(firsttouch: Start, words: list[str], said: str) -> None:
    finished = firsttouch("run", *words)
    assert finished.returncode == 2
    assert said in finished.stderr

"""Files of reports (--json, --html): names with %r and %p, and what cannot be written; options for every run."""

import json
from pathlib import Path

import pytest

from .conftest import Start, Write

IMPORT = "import numpy; print('ran')"


def test_name_is_meant_where_the_command_was_given(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    code = "import os; os.chdir('elsewhere')"
    firsttouch("run", "--json", "report.json", "-c", code)
    assert json.loads((tmp_path / "report.json").read_text())["numpy"] is None


def test_dash_is_standard_output_after_the_program_s_own(firsttouch: Start) -> None:
    done = firsttouch("run", "--json", "-", "-c", IMPORT)
    first, rest = done.stdout.split("\n", 1)
    assert first == "ran"
    assert json.loads(rest)["pooled"] is True
    assert "firsttouch, process" in done.stderr


ONES = "import numpy as np, sys; [np.ones(1 << 20) for _ in range(9)]; sys.exit('<&>' == 0 or 3)"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["run", "-q"], "<tr><td>large "),
        (
            ["run", "-q", "--limit", "1GiB", "--json", "100%.json"],
            "<tr><td>allocator</td><td>limited(pool(), &#x27;1 GiB&#x27;)",
        ),
        (["advise", "-q"], "pooled memory"),
        (["why", "-q"], "<tr><th>resident memory</th>"),
    ],
)
def test_page(firsttouch: Start, tmp_path: Path, words: list[str], shown: str) -> None:
    done = firsttouch(*words, "--html", "page.html", "-c", ONES)
    page = (tmp_path / "page.html").read_text()
    assert done.returncode == 3
    assert shown in page
    assert "&lt;&amp;&gt;" in page
    assert "<&>" not in page
    assert [json.loads(file.read_text())["pooled"] for file in tmp_path.glob("*.json")] == [True] * ("--json" in words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "import os; os._exit(0)"], "no page: the program left no report"),
        (["--json", "a-%p", "-c", "1"], "run: --html shows the report of one process"),
        (["--limit", "soon", "-c", "1"], "run: --limit: "),
    ],
)
def test_no_page(firsttouch: Start, tmp_path: Path, words: list[str], said: str) -> None:
    done = firsttouch("run", "--html", "page.html", *words)
    assert done.stderr.startswith(f"firsttouch: {said}")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_the_program_takes_away_costs_one_line(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    done = firsttouch("run", "-q", "--json", "old/report.json", "-c", "import os; os.rmdir('old')")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "old/report.json: No such file or directory" in done.stderr


def test_a_path_that_the_program_emptied_does_not_matter(firsttouch: Start, tmp_path: Path) -> None:
    done = firsttouch("run", "-q", "--json", "report.json", "-c", f"{IMPORT}; import sys; sys.path.clear()")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "report.json").read_text())["pooled"] is True


def test_rank_zero_speaks_for_all_and_each_has_its_file(firsttouch: Start, tmp_path: Path) -> None:
    for number, name, speaks in (("0", "one", True), ("3", "one", False), ("0", "r%r", True), ("3", "r%r", False)):
        rank = {"SLURM_PROCID": number}
        done = firsttouch("run", "--json", f"{name}.json", "-c", IMPORT, env=rank)
        assert ("firsttouch, process" in done.stderr) is speaks
    found = {path.name: json.loads(path.read_text())["rank"] for path in tmp_path.glob("*.json")}
    assert found == {"one.json": 0, "r0.json": 0, "r3.json": 3}
    firsttouch("run", "--json", "r%r.json", "-c", IMPORT)
    assert json.loads((tmp_path / "r0.json").read_text())["rank"] is None


FILE = ".config/firsttouch/run"
SERVED = "import numpy as np, firsttouch as ft; print(ft.get_allocator(np.ones(1 << 20)))"


@pytest.mark.parametrize(
    ("file", "variable", "line", "said"),
    [
        ("--limit '1 GiB' # of all\n-q", "", [], "limited(pool(), '1 GiB')"),
        ("-q --limit 1GiB", "--limit=2GiB", [], "limited(pool(), '2 GiB')"),
        ("-q --limit 1GiB", "--limit=2GiB", ["--limit", "3GiB"], "limited(pool(), '3 GiB')"),
        ("-q --json a.json", "", ["--html", "page.html"], "pool()"),
        ("", "script.py", [], "the variable FIRSTTOUCH_OPTIONS: only options of firsttouch run may stand there"),
        ("--json 'a", "", [], "~/.config/firsttouch/run: only options of firsttouch run may stand there"),
        ("", "--limit soon", [], "run: --limit: "),
    ],
)
def test_options_for_every_run(
    firsttouch: Start, write: Write, tmp_path: Path, file: str, variable: str, line: list[str], said: str
) -> None:
    write(FILE, file)
    usual = {"HOME": str(tmp_path), "FIRSTTOUCH_OPTIONS": variable}
    done = firsttouch("run", *line, "-c", SERVED, env=usual)
    assert said in (done.stderr or done.stdout)


def test_a_program_in_another_language_gets_the_usual_options_that_it_can_obey(firsttouch: Start) -> None:
    usual = {"FIRSTTOUCH_OPTIONS": "-q --lines --all --limit 1GiB --allocator mimalloc"}
    done = firsttouch("run", "true", env=usual)
    assert (done.returncode, done.stderr) == (0, "")

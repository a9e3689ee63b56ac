"""The programs in seven languages print the same under the preloaded pool, and the experiment runs."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.experiments.languages import run
from benchmarks.languages import FOLDER, LANGUAGES, NAMES, program
from firsttouch.tools import preload
from firsttouch.tools.measuring.contenders import DEFAULT, PRELOADED, Contender, environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(preload.missing() is not None, reason="no preloaded library"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_prints_the_same(name: str, tmp_path: Path) -> None:
    made = program(name, tmp_path)
    if made is None:
        pytest.skip(f"no {LANGUAGES[Path(name).suffix]}")

    def printed(contender: Contender) -> str:
        with open(made.stdin) as stdin:
            done = subprocess.run(
                made.command,
                env=environment(contender),
                stdin=stdin,
                cwd=FOLDER,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        return done.stdout

    plain = printed(DEFAULT)
    assert plain.strip()
    assert printed(PRELOADED) == plain


def test_the_experiment_judges_every_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith("FIRSTTOUCH")]:
        monkeypatch.delenv(variable)
    section = run(quick=True)
    if section.notes and "Not installed" in section.notes[0]:
        pytest.skip("no C compiler")
    assert len(section.verdicts) == 8
    assert [table.title for table in section.tables] == [
        "**Time**",
        "**Peak resident memory**, of the default's",
        "**Resident two seconds after the last free**, MiB",
        "**Time and memory together**, of preloaded pool, divided by the row's: geometric means",
    ]

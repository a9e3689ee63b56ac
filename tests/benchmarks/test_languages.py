"""The programs in seven languages print the same under the preloaded pool."""

import subprocess
from pathlib import Path

import pytest

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
        chosen = environment(contender)
        with open(made.stdin) as stdin:
            return subprocess.check_output(made.command, env=chosen, stdin=stdin, cwd=FOLDER, text=True)

    plain = printed(DEFAULT)
    assert plain.strip()
    assert printed(PRELOADED) == plain

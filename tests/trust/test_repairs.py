"""The patches that take repairs out fit the code as it is, so that their evidence can be had again."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trust.campaign import ROOT
from tests.trust.repairs.__main__ import HERE, sign, told

PATCHES = sorted(HERE.glob("*.patch"))


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies them")
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_repair_can_be_taken_out(patch: Path) -> None:
    what, by = told(patch)
    assert what
    assert by == "programs" or (ROOT / by).is_file()
    done = subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_misspelt_repair_is_named_before_the_others_are_looked_for() -> None:
    command = [sys.executable, "-m", "tests.trust.repairs", "reserve", "handle-sise"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "unknown repair 'handle-sise': there are " in done.stderr


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("it hangs\nFatal Python error", "a hang"),
        ("exit status -11\nFatal Python error", "SIGSEGV"),
        ("exit status 1\nstep 7, make: ValueError: no\n(at most 1 MiB)", "ValueError in make: no"),
    ],
)
def test_how_a_program_failed_is_said_in_a_few_words(said: str, shown: str) -> None:
    assert sign(said) == shown

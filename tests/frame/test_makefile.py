"""The Makefile: a step that fails stops make, and is named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_a_failed_step_stops_make_and_is_named(tmp_path: Path) -> None:
    extra = tmp_path / "extra.mk"
    extra.write_text(
        "broken:\n\t$(call step,the first,echo one)\n\t$(call step,the second,echo two; exit 7)\n"
        "\t$(call step,the third,echo three)\n"
    )
    said = make("-f", "Makefile", "-f", extra, "broken")
    assert said.returncode != 0
    assert "one" in said.stdout
    assert "two" in said.stdout
    assert "three" not in said.stdout
    assert '*** The step "the second" failed.' in said.stderr


def test_a_wrong_python_stops_make_before_an_environment_is_touched(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    said = make("PYTHON=/nonexistent/python3", f"BUILD={folder}", f"{folder}/made")
    assert said.returncode != 0
    assert "PYTHON=/nonexistent/python3 cannot be run, or is no Python 3" in said.stderr
    assert folder.is_dir()


def test_an_environment_is_made_again_by_its_own_python(tmp_path: Path) -> None:
    """As where it is active while a lock changes."""
    lock, extra, folder = tmp_path / "empty.txt", tmp_path / "extra.mk", tmp_path / "environment"
    lock.touch()
    name = os.path.relpath(lock.with_suffix(""), ROOT / "requirements")
    extra.write_text(f"{folder}/made:\n\t$(call environment,{folder},{name})\n")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (folder / "left").touch()
    said = make("-f", "Makefile", "-f", extra, f"PYTHON={folder}/bin/python", f"{folder}/made")
    assert said.returncode == 0, said.stderr
    assert (folder / "bin" / "python").exists()
    assert not (folder / "left").exists()


def test_help_names_what_people_ask_for() -> None:
    said = make()
    assert said.returncode == 0
    for target in ("demo", "test", "lint", "bench", "clean"):
        assert f"make {target} " in said.stdout


@pytest.mark.skipif(
    shutil.which("cargo") is None or not (ROOT / "target" / "release" / "libfirsttouch_preload.so").exists(),
    reason="the library for other programs is not built here",
)
def test_programs_that_run_keep_the_library_they_were_started_with(tmp_path: Path) -> None:
    library = tmp_path / "libfirsttouch_preload.so"
    library.write_bytes(b"as before")
    os.utime(library, (0, 0))
    with library.open("rb") as mapped:
        said = make(f"PRELOAD={library}", "CARGO_TARGET_DIR=target", library)
        assert said.returncode == 0, said.stderr
        assert mapped.read() == b"as before"
    assert library.read_bytes()[:4] == b"\x7fELF"


@pytest.mark.skipif(shutil.which("ruff") is None or not (ROOT / ".git").exists(), reason="needs ruff and a checkout")
def test_lint_reads_every_program_in_python() -> None:
    """As the hooks of pre-commit do, which know a program by its first line, too."""

    def said(*command: str) -> list[Path]:
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        return [ROOT / line for line in done.stdout.splitlines()]

    tracked = [path for path in said("git", "ls-files") if path.is_file()]
    ours = {path for path in tracked if path.suffix in (".py", ".pyi")}
    ours |= {path for path in tracked if re.match(rb"#!.*python", path.read_bytes()[:80])}
    assert ours <= set(said("ruff", "check", "--show-files", ".")), "extend-include in pyproject.toml adds one"

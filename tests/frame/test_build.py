"""`make wheels`: what a changed source is built from."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("elftools")

from wheels import build
from wheels.steps import ROOT


def wheels(dist: Path, kinds: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wheels", "--only", "build", "--dist", str(dist), "--kinds", kinds]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_cargo_sees_that_a_source_is_newer_than_what_it_built(tmp_path: Path) -> None:
    source = tmp_path / "packed" / "firsttouch-0" / "src" / "lib.rs"
    source.parent.mkdir(parents=True)
    source.touch()
    os.utime(source, (1153704088, 1153704088))  # as maturin does
    archive = shutil.make_archive(str(tmp_path / "firsttouch-0"), "gztar", tmp_path / "packed")
    began = time.time()
    tree = build.unpacked(Path(archive), tmp_path / "tree")
    assert (tree / "src" / "lib.rs").stat().st_mtime >= began - 1


def test_only_what_was_built_before_is_removed(tmp_path: Path) -> None:
    built, other = tmp_path / "firsttouch-0.0.1.tar.gz", tmp_path / "thesis.txt"
    for path in (built, other):
        path.touch()
    wheels(tmp_path, "sdist")  # fails where there is no maturin
    assert not built.exists()
    assert other.exists()


def test_a_misspelt_kind_removes_nothing(tmp_path: Path) -> None:
    built = tmp_path / "firsttouch-0.0.1.tar.gz"
    built.touch()
    done = wheels(tmp_path, "gnu,must")
    assert done.returncode == 2
    assert "unknown kind 'must': there are sdist, gnu, " in done.stderr
    assert built.exists()

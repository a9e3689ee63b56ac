"""The search for a Python: which are accepted, and the message if there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

FIND = Path(__file__).resolve().parents[2] / ".ci" / "find-python"


def pretend(folder: Path, name: str, change: str) -> Path:
    """A Python that looks to the search as if `change` had been true of it from the start."""
    folder.mkdir(exist_ok=True)
    fake = folder / name
    code = f"import sys; {change}; exec(sys.argv.pop(1))"
    fake.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$1" -c "{code}" "$3" $4\n')
    fake.chmod(0o755)
    return fake


def find(path: Path, python: str = "", *arguments: str) -> subprocess.CompletedProcess[str]:
    return search(FIND, *arguments, PATH=str(path), PYTHON=python)


def search(script: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYENV_ROOT": "/nonexistent", "PYTHON": "", "FREE_THREADED_ARCHIVE": "", **variables}
    return subprocess.run(["/bin/sh", script, *arguments], env=environment, capture_output=True, text=True)


OLD = "sys.version_info = (3, 10, 4); sys.version = '3.10.4 (main)'"


def test_a_named_python_that_is_too_old_is_refused_in_one_line(tmp_path: Path) -> None:
    old = pretend(tmp_path, "python3", OLD)
    said = find(tmp_path, str(old))
    assert said.returncode == 1
    assert said.stdout == ""
    assert said.stderr == f"PYTHON={old} is cpython 3.10.4: firsttouch needs CPython 3.11 or newer\n"


def test_a_named_python_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    said = find(tmp_path, "/nonexistent/python3")
    assert said.returncode == 1
    assert said.stderr == "PYTHON=/nonexistent/python3 cannot be run, or is no Python 3\n"


def test_a_named_python_is_the_only_one_looked_at(tmp_path: Path) -> None:
    pretend(tmp_path, "python3.14", "pass")
    said = find(tmp_path, sys.executable)
    assert said.returncode == 0
    assert said.stdout == f"{sys.executable}\n"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (OLD, "is cpython 3.10.4: firsttouch needs CPython 3.11 or newer"),
        ("sys.modules['ensurepip'] = None", "without the venv module"),
        (
            "import sysconfig; sysconfig.get_config_var = lambda name: name == 'Py_GIL_DISABLED'",
            " without the GIL: make test-free-threaded takes it",
        ),
        ("sys.implementation.name = 'pypy'", "is pypy "),
    ],
)
def test_where_none_is_good_each_is_named_with_its_reason(tmp_path: Path, change: str, why: str) -> None:
    fake = pretend(tmp_path, "python3", change)
    said = find(tmp_path)
    assert said.returncode == 1
    assert said.stderr.startswith("firsttouch needs CPython 3.11 or newer with the venv module; none was found.\n")
    reason = said.stderr.splitlines()[1]
    assert reason.startswith(f"  {fake} is ")
    assert why in reason


def test_the_newest_comes_first_and_each_version_once(tmp_path: Path) -> None:
    for minor in (11, 12, 13):
        change = f"sys.version_info = (3, {minor}, 1); sys.executable = 'python-{minor}'"
        pretend(tmp_path, f"python3.{minor}", change)
    pretend(tmp_path, "python3", "sys.version_info = (3, 12, 1); sys.executable = 'the-same-again'")
    assert find(tmp_path).stdout.split() == ["python-13", "python-12", "python-11"]
    assert find(tmp_path, "", "--first").stdout.split() == ["python-13"]


def test_folders_may_have_spaces_in_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "my programs"
    pretend(folder, "python3.13", f"sys.version_info = (3, 13, 1); sys.executable = '{folder}/python3.13'")
    pretend(folder, "python3", f"sys.version_info = (3, 11, 1); sys.executable = '{folder}/python3'")
    assert find(folder).stdout.splitlines() == [f"{folder}/python3.13", f"{folder}/python3"]


def test_it_needs_no_home(tmp_path: Path) -> None:
    pretend(tmp_path, "python3", "sys.executable = 'the-only-one'")
    said = subprocess.run(["/bin/sh", FIND], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert (said.stdout, said.stderr) == ("the-only-one\n", "")


FREE = (
    "import sysconfig; sysconfig.get_config_var = lambda name: 1 if name == 'Py_GIL_DISABLED' else None; "
    "sys.version_info = (3, 14, 1); sys.version = '3.14.1 (main)'; sys.executable = 'free'"
)


def test_a_free_threaded_python_is_found_by_its_name(tmp_path: Path) -> None:
    pretend(tmp_path, "python3", "pass")
    pretend(tmp_path, "python3.14t", FREE)
    assert find(tmp_path, "", "--free-threaded").stdout.split() == ["free"]
    assert find(tmp_path, "", "--first").stdout.split() != ["free"]


def test_a_named_python_with_the_gil_is_not_free_threaded(tmp_path: Path) -> None:
    said = find(tmp_path, str(pretend(tmp_path, "python3", OLD.replace("10", "12"))), "--free-threaded")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.endswith("is cpython 3.12.4 with the GIL\n")


def test_where_no_free_threaded_python_is_found_it_says_how_to_get_one(tmp_path: Path) -> None:
    pretend(tmp_path, "python3", "import sysconfig; sysconfig.get_config_var = lambda name: None")
    said = find(tmp_path, "", "--free-threaded")
    assert (said.returncode, said.stdout) == (77, "")
    assert "pyenv install 3.14t" in said.stderr


@pytest.fixture
def archived(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """The search in a checkout of its own, and what names an archive to it."""
    (tmp_path / ".ci").mkdir()
    script = Path(shutil.copy(FIND, tmp_path / ".ci"))
    archive = tmp_path / "python.tar.xz"
    with tarfile.open(archive, "w:xz") as file:
        file.add(pretend(tmp_path / "made", "python3.14t", FREE), "relocatable/bin/python3.14t")
    pretend(tmp_path / "installed", "python3", "pass")
    path = f"{tmp_path / 'installed'}:/usr/bin:/bin"  # tar, and whatever is installed here
    return script, {"PATH": path, "FREE_THREADED_ARCHIVE": str(archive)}


def test_where_none_is_installed_an_archive_is_unpacked_once(archived: tuple[Path, dict[str, str]]) -> None:
    script, variables = archived
    unpacked = script.parents[1] / "target/free-threaded-python/relocatable/bin/python3.14t"
    if search(script, "--free-threaded", **variables | {"FREE_THREADED_ARCHIVE": ""}).returncode == 0:
        pytest.skip("a free-threaded Python is installed in /usr/bin")
    assert search(script, "--free-threaded", **variables).stdout.split() == ["free"]
    first = unpacked.stat().st_ino
    assert search(script, "--free-threaded", **variables).stdout.split() == ["free"]
    assert unpacked.stat().st_ino == first


def test_an_installed_one_goes_before_the_archive(archived: tuple[Path, dict[str, str]]) -> None:
    script, variables = archived
    pretend(script.parents[1] / "installed", "python3.14t", FREE.replace("'free'", "'installed'"))
    assert search(script, "--free-threaded", **variables).stdout.split() == ["installed"]
    assert not (script.parents[1] / "target").exists()


def test_an_archive_that_is_none_is_named_and_leaves_nothing(archived: tuple[Path, dict[str, str]]) -> None:
    script, variables = archived
    broken = script.parents[1] / "broken.tar.xz"
    broken.write_bytes(b"no archive")
    said = search(script, "--free-threaded", **variables | {"FREE_THREADED_ARCHIVE": str(broken)})
    assert (said.returncode, said.stdout) == (77, "")
    assert "tar: " in said.stderr
    assert not (script.parents[1] / "target/free-threaded-python").exists()

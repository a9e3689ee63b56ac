"""Suites where a conftest.py applies to some tests only, and suites whose warnings are errors."""

import importlib.util
import sys
from pathlib import Path

import pytest

import _firsttouch_start
import firsttouch
from tests.plugin.suites import Ended, plugin, pytest_run
from tests.programs import execute

#: Says which tests it hears of.
CONFTEST = """
import os, pytest
main = os.getpid()
here = os.path.basename(os.path.dirname(__file__))

@pytest.fixture
def own():
    return here

def pytest_runtest_logreport(report):
    with open(os.path.join(os.path.dirname(__file__), "heard"), "a") as file:
        print(os.getpid() == main, report.nodeid, report.when, file=file)
"""

TESTS = """
import numpy as np

def test_good_{0}(own): assert own == "{0}" and np.ones(3).sum() == 3
def test_bad_{0}(own): assert np.ones(3).sum() == 4
"""


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("several")
    for name in ("a", "b"):
        (root / name).mkdir()
        (root / name / "conftest.py").write_text(CONFTEST)
        (root / name / f"test_{name}.py").write_text(TESTS.format(name))
    (root / "test_beside.py").write_text("def test_beside(): assert 0")
    return root


def _run(root: Path, *options: str) -> tuple[Ended, list[list[str]]]:
    """What came of it, and what each conftest.py heard."""
    files = [root / name / "heard" for name in ("a", "b")]
    for file in files:
        file.unlink(missing_ok=True)
    ended = pytest_run(root, *options)
    return ended, [file.read_text().splitlines() if file.exists() else [] for file in files]


@pytest.mark.quick
def test_no_failure_is_lost_beside_another_conftest(several: Path) -> None:
    plain, heard = _run(several)
    assert plain.failed == {"test_bad_a", "test_bad_b", "test_beside"}
    assert [len(lines) for lines in heard] == [6, 6]
    for options in (["--firsttouch=guarded"], ["--firsttouch=filled"], ["--firsttouch=filled", "-n1", "-p", "xdist"]):
        if "xdist" in options and not importlib.util.find_spec("xdist"):
            continue
        ours, heard_ours = _run(several, *options)
        assert ours.outcomes == plain.outcomes, ours.said
        assert ours.status == plain.status == 1
        if "xdist" not in options:  # there the worker hears, too
            assert heard_ours == heard


@pytest.mark.parametrize("words", [["-m", "firsttouch", "run", "--quiet", "-m", "pytest"], ["-m", "pytest"]])
def test_a_suite_whose_warnings_are_errors_starts(tmp_path: Path, words: list[str]) -> None:
    """pytest warns of what it wants to rewrite and finds loaded: all packages of whoever brings a plugin."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (tmp_path / "test_one.py").write_text("import numpy as np\ndef test_one(): assert np.ones(3).sum() == 3\n")
    (tmp_path / "nothing_but_a_plugin.py").touch()
    installed = tmp_path / "as_installed-1.0.dist-info"  # here the package may lie in a source tree
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: as-installed\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[pytest11]\nas_installed = nothing_but_a_plugin\n")
    for package in (firsttouch, _firsttouch_start):
        (tmp_path / package.__name__).symlink_to(Path(package.__file__ or "").parent)
    (installed / "RECORD").write_text("firsttouch/__init__.py,,\n_firsttouch_start/__init__.py,,\n")
    command = [sys.executable, *words, *plugin(), "-p", "no:cacheprovider"]
    done = execute(*command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout

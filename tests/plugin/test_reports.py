"""pytest's reports about tests in children are the same as without firsttouch."""

from pathlib import Path

import pytest

from tests.plugin.suites import Ended, pytest_run, suite

#: Says which tests it hears of.
CONFTEST = """
import os, pytest
main = os.getpid()
here = os.path.basename(os.path.dirname(__file__))

@pytest.fixture(name="here")
def its_folder():
    return here

def pytest_runtest_logreport(report):
    with open(os.path.join(os.path.dirname(__file__), "heard"), "a") as file:
        print(os.getpid() == main, report.nodeid, report.when, file=file)
"""

#: Something of everything.
MIXED = """
import unittest, warnings

calls = []

@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "x").write_text("x")
    yield folder
    (folder / "x").unlink()

@pytest.fixture(scope="module")
def module(whole):
    calls.append("module")
    yield np.arange(100_000)
    calls.append("end")

@pytest.fixture(scope="class", params=["a", "b"])
def both(request, module):
    return request.param

@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("OWN", str(tmp_path))

class TestClass:
    def test_first(self, both, module, whole):
        assert module.sum() == 4999950000 and (whole / "x").exists()
    def test_second(self, both):
        assert both == "a"

class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.x = np.ones(10)
    def test_case(self):
        self.assertEqual(self.x.sum(), 10)
    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(self.x.sum(), 11)

@pytest.mark.parametrize("n", [0, 1, 20_000])
def test_sizes(n):
    assert np.ones(n).sum() == n

def test_fails():
    print("on standard output")
    assert np.ones(3).sum() == 4

@pytest.fixture
def broken():
    raise ValueError("no such thing")

def test_error(broken): ...

@pytest.fixture
def broken_end():
    yield
    raise ValueError("bad end")

def test_bad_end(broken_end): ...

@pytest.mark.skip(reason="not today")
def test_skipped(): ...

def test_skips_itself():
    pytest.skip("not now")

@pytest.mark.xfail(reason="known")
def test_known(): assert np.ones(3).sum() == 4

@pytest.mark.xfail(raises=KeyError)
def test_known_for_another_reason(): assert np.ones(3).sum() == 4

@pytest.mark.xfail(strict=False)
def test_works_after_all(): ...

@pytest.mark.xfail(strict=True)
def test_must_not_work(): ...

def test_warns():
    warnings.warn("mind the gap", RuntimeWarning)

@pytest.mark.filterwarnings("error")
def test_warning_is_an_error():
    warnings.warn("mind", RuntimeWarning)

def test_exits():
    raise SystemExit(3)

def test_notes(record_property):
    record_property("figure", 12)
"""


def lines(said: str) -> list[str]:
    """The short summary and the warnings, without times."""
    return sorted(
        line for line in said.splitlines() if line.startswith(("FAILED", "ERROR ", "XFAIL", "XPASS", "SKIPPED"))
    )


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders with a conftest.py each, which applies there only, and a test beside them."""
    root = tmp_path_factory.mktemp("several")
    for name, tests in (("a", MIXED), ("b", "def test_bad(here): assert here == 'a'")):
        (root / name).mkdir()
        (root / name / "conftest.py").write_text(CONFTEST)
        suite(root / name, **{f"test_{name}": tests})
    return suite(root, test_beside="def test_beside(): assert 0")


def _run(root: Path, *options: str) -> tuple[Ended, list[list[str]]]:
    """What came of it, and what each conftest.py heard."""
    files = [root / name / "heard" for name in ("a", "b")]
    for file in files:
        file.unlink(missing_ok=True)
    ended = pytest_run(root, *options)
    return ended, [file.read_text().splitlines() if file.exists() else [] for file in files]


@pytest.fixture(scope="module")
def plain(several: Path) -> tuple[Ended, list[list[str]]]:
    return _run(several)


@pytest.mark.quick
@pytest.mark.parametrize("options", [["guarded"], ["filled"], ["filled", "-n1", "-p", "xdist"]], ids=" ".join)
def test_the_same_outcomes(several: Path, plain: tuple[Ended, list[list[str]]], options: list[str]) -> None:
    if "xdist" in options:
        pytest.importorskip("xdist")
    expected, heard = plain
    assert {"test_bad", "test_beside", "test_fails"} <= expected.failed
    ours, heard_ours = _run(several, f"--firsttouch={options[0]}", *options[1:])
    assert ours.outcomes == expected.outcomes
    assert lines(ours.said) == lines(expected.said)
    assert ours.status == expected.status == 1
    assert "on standard output" in ours.messages["test_fails"] or "on standard output" in ours.said
    assert ours.said.count("RuntimeWarning: mind the gap") == expected.said.count("RuntimeWarning: mind the gap") > 0
    assert "xdist" in options or heard_ours == heard  # there the worker hears, too

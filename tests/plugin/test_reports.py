"""pytest's reports about tests in children are the same as without firsttouch."""

from pathlib import Path

import pytest

from tests.plugin.suites import Ended, pytest_run, suite

WAYS = ["guarded", "filled"]

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
def plain(mixed: Path) -> Ended:
    return pytest_run(mixed)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return suite(tmp_path_factory.mktemp("mixed"), test_mixed=MIXED)


@pytest.mark.quick
@pytest.mark.parametrize("way", WAYS)
def test_the_same_outcomes(mixed: Path, plain: Ended, way: str) -> None:
    ours = pytest_run(mixed, f"--firsttouch={way}")
    assert ours.outcomes == plain.outcomes
    assert lines(ours.said) == lines(plain.said)
    assert ours.status == plain.status == 1
    assert "mind the gap" in ours.said
    assert "on standard output" in ours.messages["test_fails"] or "on standard output" in ours.said
    assert ours.said.count("RuntimeWarning: mind the gap") == plain.said.count("RuntimeWarning: mind the gap")

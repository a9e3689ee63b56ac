"""Which tests `filled` reports as dependent on uninitialized memory, and which not."""

from pathlib import Path

import pytest

from tests.plugin.suites import pytest_run, suite

NEVER_WRITTEN = "depends on memory that was never written"

TESTS = """
import os, pathlib, ctypes

def test_fails_anyway():
    assert np.ones(3).sum() == 4

def test_sums_empty():
    assert np.empty(100_000).sum() < 1

def test_crashes_on_empty():
    address = np.empty(1, np.int64)[0]
    if address in (-1, 0x7f7f7f7f7f7f7f7f):
        ctypes.string_at(64)

def test_small():
    assert not np.isnan(np.empty(2)).any()

def test_positive():
    # -1 and NaN are not above; huge numbers are.
    assert not (np.empty(7, np.int32) > 1_000_000_000).any()

def test_grown():
    x = np.zeros(10)
    x.resize(20_000, refcheck=False)
    assert x.sum() == 0

def test_zeros():
    assert np.zeros(100_000).sum() == 0

def test_set_first():
    x = np.empty(1000)
    x[:] = 1
    assert x.sum() == 1000

def test_now_and_then(request):
    count = pathlib.Path("runs")
    runs = int(count.read_text()) if count.exists() else 0
    count.write_text(str(runs + 1))
    assert runs != 0

@pytest.fixture
def table():
    assert np.empty(50)[0] == 0 or not np.isnan(np.empty(50)[0])
    return 1

def test_fixture(table): ...

@pytest.mark.xfail(reason="known")
def test_known():
    assert not np.isnan(np.empty(5)).any()
"""

DEPENDENT = {"test_sums_empty", "test_crashes_on_empty", "test_small", "test_positive", "test_fixture"}


@pytest.mark.quick
def test_who_depends(tmp_path: Path) -> None:
    ended = pytest_run(suite(tmp_path, test_a=TESTS), "--firsttouch=filled")
    said = {test for test, message in ended.messages.items() if NEVER_WRITTEN in message}
    assert said == DEPENDENT, ended.said
    assert ended.failed == DEPENDENT | {"test_fails_anyway", "test_now_and_then"}
    assert ended.outcomes["test_known"] == "skipped"
    assert "0x7f (huge numbers" in ended.messages["test_positive"]
    assert "0xff (NaN" in ended.messages["test_sums_empty"]
    assert "assert" in ended.messages["test_sums_empty"], "the failure itself is shown too"
    assert "died of SIGSEGV" in ended.messages["test_crashes_on_empty"]


def test_memory_from_before_the_tests_is_filled_too(tmp_path: Path) -> None:
    suite(tmp_path, test_a="early = np.empty(1000)\ndef test_a(): assert np.isnan(early).all()")
    assert pytest_run(tmp_path, "--firsttouch=filled").status == 0

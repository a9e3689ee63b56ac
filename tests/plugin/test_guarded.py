"""What `guarded` reports about overruns in fixtures, several in one test, and those before the tests."""

from pathlib import Path

import pytest

from tests.plugin.suites import pytest_run, suite

#: They write a byte behind an array, or before it, without any C of our own.
TESTS = """
import ctypes

def poke(array, offset):
    ctypes.memset(array.ctypes.data + offset, 7, 1)

early = np.zeros(60, np.uint8)
poke(early, 60)

@pytest.fixture
def at_setup():
    x = np.zeros(60, np.uint8)
    poke(x, 61)
    return x

@pytest.fixture
def at_teardown():
    x = np.zeros(60, np.uint8)
    yield x
    poke(x, 62)

def test_setup(at_setup): ...

def test_teardown(at_teardown): ...

def test_living_and_freed():
    x, y = np.zeros(60, np.uint8), np.zeros(50, np.uint8)
    poke(x, 60)
    poke(y, 50)
    del x
    assert True

def test_before():
    poke(np.zeros(60, np.uint8), -3)

def test_fails_besides():
    x = np.zeros(60, np.uint8)
    poke(x, 60)
    assert x.sum() == 1

@pytest.mark.xfail(reason="known")
def test_known():
    poke(np.zeros(60, np.uint8), 60)

def test_far_behind():
    x = np.zeros(64, np.uint8)
    poke(x, 64 + 1000)

def test_early_again():
    early[0] = 1

def test_large():
    x = np.zeros(5 << 20, np.uint8)
    poke(x, x.size)
"""


def test_overruns(tmp_path: Path) -> None:
    ended = pytest_run(suite(tmp_path, test_a=TESTS), "--firsttouch=guarded")
    expected = {
        "test_setup": "something wrote 1 byte behind an array of 60 bytes",
        "test_teardown": "something wrote 2 bytes behind an array of 60 bytes",
        "test_living_and_freed": "something wrote right behind an array of 50 bytes",
        "test_before": "something wrote 3 bytes before an array of 60 bytes",
        "test_fails_besides": "assert",
        "test_far_behind": "wrote 1000 bytes behind an array of 64 bytes (SIGSEGV)",
        "test_large": "wrote right behind an array of 5242880 bytes (SIGSEGV)",
    }
    assert ended.failed == set(expected), ended.said
    for test, words in expected.items():
        assert words in ended.messages[test], ended.messages[test]
    assert "something wrote right behind an array of 60 bytes" in ended.messages["test_living_and_freed"]
    assert ended.said.count("by firsttouch") == 1, "beside a failure of its own, the overrun is shown apart"
    assert ended.outcomes["test_setup"] == ended.outcomes["test_teardown"] == "error"
    assert ended.outcomes["test_known"] == "skipped"
    assert ended.outcomes["test_early_again"] == "passed", "what was hit at import is no test's fault"


READS = """
import ctypes

def read(address): return ctypes.string_at(address, 8)

def test_past_the_end():
    x = np.ones(16)
    read(x.ctypes.data + x.nbytes)

def test_before_the_beginning():
    x = np.ones(8)
    read(x.ctypes.data - 8)

def test_after_free():
    x = np.ones(1000)
    address = x.ctypes.data
    del x
    read(address)

def test_from_before_a_resize():
    x = np.ones(1000)
    address = x.ctypes.data
    x.resize(100_000, refcheck=False)
    read(address)

def test_right():
    x = np.ones(16)
    read(x.ctypes.data + x.nbytes - 8)
"""


@pytest.mark.parametrize(
    ("way", "found"),
    [
        ("guarded", {"test_past_the_end": "out of bounds: read right behind an array of 128 bytes"}),
        (
            "guarded(side='before', keep='1 MiB')",
            {"test_before_the_beginning": "out of bounds: read 8 bytes before an array of 64 bytes"},
        ),
    ],
)
def test_reads(tmp_path: Path, way: str, found: dict[str, str]) -> None:
    ended = pytest_run(suite(tmp_path, test_a=READS), f"--firsttouch={way}")
    freed = "use after free: read byte 0 of an array of 8000 bytes that was freed"
    found |= {"test_after_free": freed, "test_from_before_a_resize": freed}
    assert ended.failed == set(found), ended.said
    for test, words in found.items():
        assert words in ended.messages[test], ended.messages[test]
    assert "in test_after_free" in ended.messages["test_after_free"], "the lines that called are shown"


def test_many_arrays(tmp_path: Path) -> None:
    """More than the system's default number of mappings allows is no crash."""
    suite(tmp_path, test_a="def test_many():\n kept = [np.zeros(10) for _ in range(20_000)]\n assert len(kept)\n")
    ended = pytest_run(tmp_path, "--firsttouch=guarded")
    assert ended.status == 0, ended.said

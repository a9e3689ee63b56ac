"""The tables of `tracked`: which tests held most, and which arrays outlived their test."""

import re
from pathlib import Path

import pytest

from tests.plugin.suites import pytest_run, suite

TESTS = """
import functools

kept = []
at_import = np.ones(1000)

@functools.cache
def table(n):
    return np.arange(n * 1000)

@pytest.fixture(scope="session")
def shared():
    return np.zeros(2_000_000)

@pytest.fixture(scope="module", autouse=True)
def small():
    return np.zeros(10)

def test_keeps():
    for size in (1000, 2000):
        kept.append(np.zeros(size))

def test_caches():
    assert table(3)[5] == 5

def test_holds_much():
    for _ in range(3):
        x = np.ones(4_000_000)
    assert x.size

def test_holds_what_is_shared(shared):
    assert shared.size

def test_fails_with_an_array():
    x = np.ones(5000)
    assert x.sum() == 0

def test_cycle():
    x = [np.ones(100)]
    x.append(x)

def test_nothing(): ...
"""


def rows(said: str, title: str) -> list[list[str]]:
    """The lines of a table, cut at two spaces and more."""
    after = said.split(title)[1].splitlines()[2:]
    lines = []
    for line in after:
        if line.startswith("="):
            break
        lines.append(re.split(r"\s{2,}", line.strip()))
    return lines


@pytest.mark.quick
def test_the_tables(tmp_path: Path) -> None:
    ended = pytest_run(suite(tmp_path, test_a=TESTS), "--firsttouch=tracked")
    assert ended.failed == {"test_fails_with_an_array"}
    held = rows(ended.said, "tests that held most")
    # x still lives when the next array is made.
    assert held[0][2] == "test_a.py::test_holds_much"
    assert held[0][0] == "61.04 MiB"
    assert held[1][2] == "test_a.py::test_holds_what_is_shared"
    assert held[1][0].startswith("15.26 MiB")
    assert len(held) == 7
    outlived = rows(ended.said, "arrays that outlived their test")
    assert outlived == [
        ["23.44 KiB", "1", "test_a.py:11", "test_a.py::test_caches"],
        ["23.44 KiB", "2", "test_a.py:23", "test_a.py::test_keeps"],
    ]


def test_nothing_outlived(tmp_path: Path) -> None:
    ended = pytest_run(suite(tmp_path, test_a="def test_a(): np.ones(100)"), "--firsttouch=tracked")
    assert rows(ended.said, "arrays that outlived their test")[:1] == [] or "\nnone\n" in ended.said
    assert "outlived their test" in ended.said


def test_long_tables_end(tmp_path: Path) -> None:
    suite(
        tmp_path,
        test_a="kept = []\n@pytest.mark.parametrize('n', range(25))\ndef test_n(n): kept.append(np.ones(n + 1000))",
    )
    ended = pytest_run(tmp_path, "--firsttouch=tracked")
    assert len(rows(ended.said, "tests that held most")) == 10
    assert "and 5 more lines" in ended.said


def test_without_lines(tmp_path: Path) -> None:
    suite(tmp_path, test_a="kept = []\ndef test_a(): kept.append(np.ones(1000))")
    ended = pytest_run(tmp_path, "--firsttouch=tracked(malloc())")
    assert rows(ended.said, "arrays that outlived their test") == [
        ["7.81 KiB", "1", "(no Python line)", "test_a.py::test_a"]
    ]

"""`assert_at_most()` in a test suite: pytest shows the line that set the limits."""

from pathlib import Path

from tests.plugin.suites import pytest_run

_SUITE = """
import numpy as np, firsttouch as ft

def measured():
    with ft.measure() as m:
        a = np.ones(10**6); b = a + 1
    return m

def test_above(): measured().assert_at_most(peak="8 MiB")

def test_within(): measured().assert_at_most(peak="16 MiB", arrays=2)

def test_no_such_figure(): measured().assert_at_most(peek="8 MiB")
"""


def test_the_line_with_the_limits_is_shown(tmp_path: Path) -> None:
    (tmp_path / "test_memory.py").write_text(_SUITE)
    ended = pytest_run(tmp_path)
    assert ended.failed == {"test_above", "test_no_such_figure"}, ended.said
    assert "15.26 MiB held at once (peak), where at most 8 MiB may be" in ended.messages["test_above"]
    assert "no figure 'peek'" in ended.messages["test_no_such_figure"]
    for test in ended.failed:
        assert "profiling.py" not in ended.messages[test]

"""The fixture `firsttouch_measure`, in a separate test suite."""

from pathlib import Path

from tests.plugin.suites import pytest_run

_SUITE = """
import numpy as np, pytest

def test_within(firsttouch_measure):
    with firsttouch_measure(peak="8 MiB", arrays=1) as m:
        a = np.ones(10**6)
    assert m.peak == 8 * 10**6

def test_above(firsttouch_measure):
    with firsttouch_measure(peak="8 MiB"):
        a = np.ones(10**6); b = a + 1

def test_its_own_failure_is_shown(firsttouch_measure):
    with firsttouch_measure(peak="8 MiB"):
        a = np.ones(10**6); b = a + 1
        assert b.sum() == 0

def test_above_around_another_block_of_the_same(firsttouch_measure):
    limited = firsttouch_measure(peak="8 MiB")
    with limited:
        a = np.ones(10**6); b = a + 1
        with limited:
            pass

def test_no_such_figure(firsttouch_measure):
    with firsttouch_measure(peek="8 MiB"):
        pass
"""


def test_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_memory.py").write_text(_SUITE)
    ended = pytest_run(tmp_path)
    assert ended.failed == {
        "test_above",
        "test_above_around_another_block_of_the_same",
        "test_its_own_failure_is_shown",
        "test_no_such_figure",
    }, ended.said
    assert "15.26 MiB held at once (peak), where at most 8 MiB may be" in ended.messages["test_above"]
    for ours in ("within.py", "profiling.py"):  # the line of the test is shown, not ours
        assert ours not in ended.messages["test_above"]
        assert ours not in ended.messages["test_no_such_figure"]
    assert "held at once" not in ended.messages["test_its_own_failure_is_shown"]
    assert "no figure 'peek'" in ended.messages["test_no_such_figure"]

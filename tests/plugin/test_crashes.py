"""A test's process may die in any phase, in any way: that test fails, by name, and the next one runs."""

from pathlib import Path

import pytest

from tests.plugin.suites import pytest_run, suite

CRASHES = """
import ctypes, os, signal, sys, threading

@pytest.fixture
def at_setup():
    os.abort()

@pytest.fixture
def at_teardown():
    yield
    os.abort()

def test_setup(at_setup): ...

def test_call():
    print("last words")
    os.write(2, b"from C")
    ctypes.string_at(64)

def test_teardown(at_teardown): ...

@pytest.mark.xfail(reason="known to crash")
def test_known(): os.abort()

@pytest.mark.xfail(raises=ValueError)
def test_known_for_another_reason(): os.abort()

def test_leaves(): os._exit(0)

def test_leaves_badly(): os._exit(7)

def test_killed(): os.kill(os.getpid(), signal.SIGKILL)

def test_sent(): os.kill(os.getpid(), signal.SIGSEGV)

def test_in_a_thread():
    thread = threading.Thread(target=ctypes.string_at, args=(64,))
    thread.start()
    thread.join()

def test_deep():
    ctypes.pythonapi.Py_MakePendingCalls
    function = ctypes.CFUNCTYPE(None)(lambda: ctypes.string_at(64))
    function()

def test_next():
    assert np.ones(10).sum() == 10
"""

SAID = {
    "test_setup": "died of SIGABRT",
    "test_call": "died of SIGSEGV: it read at 0x40",
    "test_teardown": "died of SIGABRT",
    "test_known_for_another_reason": "died of SIGABRT",
    "test_leaves": "ended its process, with exit status 0",
    "test_leaves_badly": "ended its process, with exit status 7",
    "test_killed": "died of SIGKILL",
    "test_sent": "died of SIGSEGV",
    "test_in_a_thread": "died of SIGSEGV",
    "test_deep": "died of SIGSEGV",
}


@pytest.mark.quick
def test_each_crash_is_one_tests_own(tmp_path: Path) -> None:
    ended = pytest_run(suite(tmp_path, test_crashes=CRASHES), "--firsttouch=guarded")
    assert ended.status == 1, ended.said
    assert ended.failed == set(SAID)
    assert ended.outcomes["test_known"] == "skipped"
    assert ended.outcomes["test_next"] == "passed"
    for test, words in SAID.items():
        assert words in ended.messages[test], ended.messages[test]
    assert (ended.outcomes["test_setup"], ended.outcomes["test_call"]) == ("error", "failed")
    assert "test_crashes.py" in ended.messages["test_call"], "no line is shown"
    assert "ERROR test_crashes.py::test_teardown" in ended.said
    for words in ("last words", "from C"):
        assert ended.said.count(words) == 1, "what a dead test wrote is shown, once"
    assert "Fatal Python error" not in ended.said


def test_a_crash_stops_the_run_where_asked(tmp_path: Path) -> None:
    ended = pytest_run(suite(tmp_path, test_crashes=CRASHES), "--firsttouch=guarded", "-x")
    assert set(ended.outcomes) == {"test_setup"}


def test_time_limits(tmp_path: Path) -> None:
    pytest.importorskip("pytest_timeout")
    slow = "import time\n@pytest.mark.timeout(2)\ndef test_slow():\n time.sleep(600)\ndef test_next(): ..."
    ended = pytest_run(suite(tmp_path, test_slow=slow), "--firsttouch=guarded")
    assert ended.failed == {"test_slow"}
    assert "Timeout" in ended.messages["test_slow"]
    assert "in test_slow" in ended.messages["test_slow"], "where it hung"


def test_exit_and_interrupt_end_the_run(tmp_path: Path) -> None:
    suite(tmp_path, test_a="def test_exit(): pytest.exit('enough', 9)\ndef test_next(): ...")
    ended = pytest_run(tmp_path, "--firsttouch=guarded")
    assert ended.status == 9
    assert "enough" in ended.said
    suite(tmp_path, test_a="def test_stop(): raise KeyboardInterrupt\ndef test_next(): ...")
    ended = pytest_run(tmp_path, "--firsttouch=guarded")
    assert ended.status == 2
    assert "test_next" not in ended.outcomes


def test_a_fork_inside_a_test(tmp_path: Path) -> None:
    """A grandchild that comes back out of the test ends there: nothing is reported twice."""
    suite(
        tmp_path, test_a="import os\ndef test_fork():\n if pid := os.fork(): os.waitpid(pid, 0)\ndef test_next(): ..."
    )
    ended = pytest_run(tmp_path, "--firsttouch=guarded")
    assert ended.status == 0, ended.said
    assert "2 passed" in ended.said

"""One test in a forked child: its reports, its warnings, and how the child ended.

Results pass to the parent through files: they survive a crash and never block.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import pytest
from _pytest.runner import runtestprotocol
from _pytest.skipping import evaluate_xfail_marks, xfailed_key

from firsttouch import _firsttouch


@dataclass
class Run:
    """The messages of a child, and how it ended."""

    reports: list[pytest.TestReport] = field(default_factory=list)
    whole: bool = False
    """Whether the test completed, whatever its outcome."""
    status: int = 0
    """As returned by :func:`os.waitstatus_to_exitcode`."""
    stopped: str = ""
    """Why the parent ended it."""
    trace: str = ""
    """The Python stack at the crash."""
    fault: str = ""
    """What a memory fault did, in a line."""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether any of its reports failed."""
        return not self.whole or any(report.failed for report in self.reports)


def run(item: pytest.Item, prepare: Callable[[], object]) -> Run:
    """Run ``prepare`` and the whole test in a child."""
    _flush(item.config)
    began = time.perf_counter()
    with contextlib.ExitStack() as opened:
        said, trace, fault = (opened.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in range(3))
        pid = _fork()
        if pid == 0:
            _be_the_child(item, prepare, said, trace, fault)
        ended = Run()
        try:
            status = os.waitpid(pid, 0)[1]
        except pytest.fail.Exception as error:  # a timeout, raised by a signal handler
            ended.stopped = str(error)
            status = _end(pid)
        except BaseException:
            _end(pid)
            raise
        ended.status = os.waitstatus_to_exitcode(status)
        ended.seconds = time.perf_counter() - began
        for file in (said, trace, fault):
            file.seek(0)
        ended.trace = trace.read().decode(errors="replace")
        if lines := fault.read().decode().splitlines():
            ended.fault = lines[-1].removeprefix("firsttouch: ")  # the last one knows the most
        with contextlib.suppress(EOFError, pickle.UnpicklingError):  # the end, or where the child died
            while True:
                _take(item, ended, *pickle.load(said))
        return ended


def _take(item: pytest.Item, ended: Run, kind: str, content: Any) -> None:
    """Apply a message of the child in the parent."""
    if kind == "report":
        ended.reports.append(item.config.hook.pytest_report_from_serializable(config=item.config, data=content))
    elif kind == "warning":
        message, filename, lineno = content
        warning = warnings.WarningMessage(message, type(message), filename, lineno)
        item.ihook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": warning, "when": "runtest", "nodeid": item.nodeid, "location": None}
        )
    elif kind == "exit":
        raise pytest.exit.Exception(*content)
    elif kind == "interrupt":
        raise KeyboardInterrupt
    elif kind == "broken":
        raise RuntimeError(f"the child that ran {item.nodeid} failed:\n{content}")
    else:
        ended.whole = True


def _fork() -> int:
    with warnings.catch_warnings():
        # Since Python 3.12, fork warns of other threads, such as xdist's. The main thread runs here.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _flush(config: pytest.Config) -> None:
    """Flush buffers, whose contents would be written twice after a fork."""
    if config.pluginmanager.has_plugin("terminalreporter"):
        config.get_terminal_writer().flush()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _lose_nothing() -> None:
    """Buffer output by lines, so that what a test prints before a crash is shown, even without capturing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def _end(pid: int) -> int:
    """End a child; with SIGABRT first, so that it can report its stack."""
    os.kill(pid, signal.SIGABRT)
    for _ in range(100):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def _be_the_child(item: pytest.Item, prepare: Callable[[], object], said: Any, trace: Any, fault: Any) -> NoReturn:
    child = os.getpid()

    def say(kind: str, content: Any) -> None:
        if os.getpid() != child:
            os._exit(1)  # a process that the test forked, and that returned from the test
        said.write(pickle.dumps((kind, content)))

    try:
        _lose_nothing()
        faulthandler.enable(trace, all_threads=False)
        _firsttouch.watch_faults(fault.fileno())
        prepare()
        _send_reports(item, say)
        with warnings.catch_warnings(record=True) as caught:
            runtestprotocol(item, log=True, nextitem=None)
        for warning in caught:
            message = warning.message
            try:
                pickle.dumps(message)
            except Exception:  # its class is the test's own
                message = UserWarning(str(message))
            say("warning", (message, warning.filename, warning.lineno))
        say("end", None)
    except KeyboardInterrupt:
        say("interrupt", None)
    except pytest.exit.Exception as error:
        say("exit", (error.msg, error.returncode))
    except BaseException:
        say("broken", traceback.format_exc())
    finally:
        _flush(item.config)
        os._exit(0)


class _Reports:
    """Receives every report in a child, and sends it to the parent."""

    def __init__(self, config: pytest.Config, say: Callable[[str, Any], None]) -> None:
        self._config = config
        self._say = say

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        hook = self._config.hook
        # The value requested when a report is shown: it fails a test whose subtests failed, which are counted here.
        hook.pytest_report_teststatus(report=report, config=self._config)
        self._say("report", hook.pytest_report_to_serializable(config=self._config, report=report))


def _send_reports(item: pytest.Item, say: Callable[[str, Any], None]) -> None:
    """Send reports to the parent, where all plugins receive them; in the child no other plugin does.

    This changes the hook's own list of plugins, which all callers read, even those that exclude a conftest.py.
    """
    manager = item.config.pluginmanager
    hook = manager.hook.pytest_runtest_logreport
    for implementation in hook.get_hookimpls():
        hook._remove_plugin(implementation.plugin)
    manager.register(_Reports(item.config, say), "firsttouch-reports")


Phase = Literal["setup", "call", "teardown"]


def reports_of(item: pytest.Item, run: Run) -> list[pytest.TestReport]:
    """Return the reports of a run; if it did not complete, with a failed one for the phase in which it crashed."""
    if run.whole:
        return run.reports
    phases: tuple[Phase, ...] = ("setup", "call", "teardown")
    done = {report.when for report in run.reports}
    when: Phase = next((phase for phase in phases if phase not in done), "teardown")
    text = what_happened(run)
    call: pytest.CallInfo[None] = pytest.CallInfo.from_call(lambda: pytest.fail(text, pytrace=False), when=when)
    call.duration = run.seconds
    item.stash[xfailed_key] = evaluate_xfail_marks(item)
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    report.sections += _captured(item.config, when)
    return [*run.reports, report]


def what_happened(run: Run) -> str:
    """Return one sentence, and the test's Python stack."""
    return "\n\n".join(part for part in (_sentence(run), _own_frames(run.trace)) if part)


def _sentence(run: Run) -> str:
    if run.stopped:
        return run.stopped
    if run.status >= 0:
        return f"the test ended its process, with exit status {run.status}"
    if run.fault.startswith(("out of bounds", "use after free")):
        return run.fault
    return f"the test's process died of {run.fault or signal.Signals(-run.status).name}"


def _own_frames(trace: str) -> str:
    """Return the test's part of faulthandler's traceback: the frames above pytest's first one."""
    frames = []
    for line in trace.splitlines():
        if not line.startswith("  File "):
            continue
        if "/_pytest/" in line or "/pluggy/" in line:
            break
        frames.append(line)
    return "Where it was, the innermost first:\n" + "\n".join(frames) if frames else ""


def _captured(config: pytest.Config, when: str) -> list[tuple[str, str]]:
    """Return the output of the dead process, from the files that pytest captures into."""
    manager = config.pluginmanager.getplugin("capturemanager")
    if manager is None:
        return []
    names = ("stdout", "stderr")
    texts = manager.read_global_capture()
    return [(f"Captured {name} {when}", text) for name, text in zip(names, texts, strict=False) if text]

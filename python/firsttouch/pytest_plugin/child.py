"""One test in a forked child: its reports, its warnings, and how the child ended.

Results pass to the parent through files: they survive a crash and never block.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, NoReturn, cast

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
    with Record() as record:
        pid = _fork()
        if pid == 0:
            _be_the_child(item, record, prepare)
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
        ended.trace, ended.fault = record.trace(), record.fault()
        for kind, content in record.said():
            _take(item, ended, kind, content)
        return ended


def _take(item: pytest.Item, ended: Run, kind: str, content: Any) -> None:
    """Apply a message of the child in the parent."""
    if kind == "report":
        ended.reports.append(Record.report(item.config, content))
    elif kind == "warning":
        warning = Record.warning(content)
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


def _be_the_child(item: pytest.Item, record: Record, prepare: Callable[[], object]) -> NoReturn:
    try:
        record.begin()
        _lose_nothing()
        faulthandler.enable(record.trace_file, all_threads=False)
        _firsttouch.watch_faults(record.fault_file.fileno())
        prepare()
        _send_reports(item, record)
        with warnings.catch_warnings(record=True) as caught:
            runtestprotocol(item, log=True, nextitem=None)
        for warning in caught:
            record.say_warning(warning)
        record.say("end", None)
    except KeyboardInterrupt:
        record.say("interrupt", None)
    except pytest.exit.Exception as error:
        record.say("exit", [error.msg, error.returncode])
    except BaseException:
        record.say("broken", traceback.format_exc())
    finally:
        _flush(item.config)
        os._exit(0)


class _Reports:
    """Receives every report in a child, and sends it to the parent."""

    def __init__(self, config: pytest.Config, record: Record) -> None:
        self._config = config
        self._record = record

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        # The value requested when a report is shown: it fails a test whose subtests failed, which are counted here.
        self._config.hook.pytest_report_teststatus(report=report, config=self._config)
        self._record.say_report(self._config, report)


def _send_reports(item: pytest.Item, record: Record) -> None:
    """Send reports to the parent, where all plugins receive them; in the child no other plugin does.

    This changes the hook's own list of plugins, which all callers read, even those that exclude a conftest.py.
    """
    manager = item.config.pluginmanager
    hook = manager.hook.pytest_runtest_logreport
    for implementation in hook.get_hookimpls():
        hook._remove_plugin(implementation.plugin)
    manager.register(_Reports(item.config, record), "firsttouch-reports")


class Record:
    """Three files shared by parent and child: one line per report, the traceback of a crash, the memory fault."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as opened:
            self._lines, self.trace_file, self.fault_file = (
                opened.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in range(3)
            )
            self._opened = opened.pop_all()
        self._child = 0

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._opened.close()

    # Called in the child.

    def begin(self) -> None:
        """Make the calling process the only one that may write."""
        self._child = os.getpid()

    def say(self, kind: str, content: Any) -> None:
        """Write one line. A process forked by the test that returns from it ends here."""
        if os.getpid() != self._child:
            os._exit(1)
        self._lines.write(json.dumps([kind, content], default=repr, skipkeys=True).encode() + b"\n")

    def say_report(self, config: pytest.Config, report: pytest.TestReport) -> None:
        """Write a report in pytest's serialized form."""
        self.say("report", config.hook.pytest_report_to_serializable(config=config, report=report))

    def say_warning(self, warning: warnings.WarningMessage) -> None:
        """Write a warning, with its class by name."""
        kind = warning.category
        where = [warning.filename, warning.lineno]
        self.say("warning", [str(warning.message), kind.__module__, kind.__qualname__, *where])

    # Called in the parent.

    def said(self) -> Iterator[tuple[str, Any]]:
        """Yield the complete lines of the child."""
        for line in _whole(self._lines).split(b"\n")[:-1]:
            kind, content = json.loads(line)
            yield kind, content

    def trace(self) -> str:
        """Return the output of faulthandler."""
        return _whole(self.trace_file).decode(errors="replace")

    def fault(self) -> str:
        """Return the last line of the fault handler, which knows the most."""
        lines = _whole(self.fault_file).decode().splitlines()
        return lines[-1].removeprefix("firsttouch: ") if lines else ""

    @staticmethod
    def report(config: pytest.Config, data: dict[str, Any]) -> pytest.TestReport:
        """Return a deserialized report, with the tuples that JSON turned into lists."""
        report: pytest.TestReport = config.hook.pytest_report_from_serializable(config=config, data=data)
        report.location = cast("tuple[str, int | None, str]", tuple(report.location))
        report.sections = [(title, text) for title, text in report.sections]
        report.user_properties = [(name, value) for name, value in report.user_properties]
        skipped: object = report.longrepr
        if isinstance(skipped, list):  # where and why
            report.longrepr = cast("tuple[str, int, str]", tuple(skipped))
        return report

    @staticmethod
    def warning(content: list[Any]) -> warnings.WarningMessage:
        """Return a deserialized warning, as a `UserWarning` if its class cannot be found or created."""
        text, module, name, filename, lineno = content
        try:
            kind = getattr(__import__(module, fromlist=[name]), name)
            message = kind(text)
        except Exception:
            kind, message = UserWarning, UserWarning(text)
        return warnings.WarningMessage(message, kind, filename, lineno)


def _whole(file: Any) -> bytes:
    parts, at = [], 0
    while part := os.pread(file.fileno(), 1 << 20, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


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

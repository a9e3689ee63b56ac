"""One test in a forked child: its reports, its warnings, and how the child ended."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from firsttouch import _firsttouch
from firsttouch.pytest_plugin.record import Record


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
    fault: tuple[int, ...] = ()
    """The memory fault as numbers: see :mod:`firsttouch.pytest_plugin.crash`."""
    seconds: float = 0.0
    found: Any = None
    """The result of ``finish``."""

    @property
    def failed(self) -> bool:
        """Whether any of its reports failed."""
        return not self.whole or any(report.failed for report in self.reports)


def run(item: pytest.Item, prepare: Callable[[], object], finish: Callable[[], Any] = lambda: None) -> Run:
    """Run ``prepare``, the whole test and ``finish`` in a child."""
    _flush(item.config)
    began = time.perf_counter()
    with Record() as record:
        pid = _fork()
        if pid == 0:
            _be_the_child(item, record, prepare, finish)
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
        ended.found = content


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


def _be_the_child(
    item: pytest.Item, record: Record, prepare: Callable[[], object], finish: Callable[[], Any]
) -> NoReturn:
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
        record.say("end", finish())
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

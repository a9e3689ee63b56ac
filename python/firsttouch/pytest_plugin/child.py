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
    """What a child said and how it ended."""

    reports: list[pytest.TestReport] = field(default_factory=list)
    whole: bool = False
    """Whether the test came to its end, well or badly."""
    status: int = 0
    """As :func:`os.waitstatus_to_exitcode` has it."""
    stopped: str = ""
    """Why the parent ended it."""
    trace: str = ""
    """Where it was in Python when it crashed."""
    fault: tuple[int, ...] = ()
    """What the memory fault was, in numbers: see :mod:`firsttouch.pytest_plugin.crash`."""
    seconds: float = 0.0
    found: Any = None
    """What ``finish`` returned."""

    @property
    def failed(self) -> bool:
        """Whether anything in it failed."""
        return not self.whole or any(report.failed for report in self.reports)


def run(item: pytest.Item, prepare: Callable[[], object], finish: Callable[[], Any] = lambda: None) -> Run:
    """Runs ``prepare``, the whole test and ``finish`` in a child."""
    _flush(item.config)
    began = time.perf_counter()
    with Record() as record:
        pid = _fork()
        if pid == 0:
            _be_the_child(item, record, prepare, finish)
        ended = Run()
        try:
            status = os.waitpid(pid, 0)[1]
        except pytest.fail.Exception as error:  # a time limit, from a signal's handler
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
    """Does in the parent what the child said."""
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
        raise RuntimeError(f"the child that ran {item.nodeid} broke down:\n{content}")
    else:
        ended.whole = True
        ended.found = content


def _fork() -> int:
    with warnings.catch_warnings():
        # From Python 3.12 on: there are other threads, of xdist for one. What runs now is the main one.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _flush(config: pytest.Config) -> None:
    """What lies in buffers at a fork would be written twice."""
    config.get_terminal_writer().flush()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _lose_nothing() -> None:
    """What a test printed before it crashed shall be seen, without capturing too."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def _end(pid: int) -> int:
    """Ends a child; SIGABRT first, so that it can say where it is."""
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
    """Hears of every report in a child, and tells the parent."""

    def __init__(self, config: pytest.Config, record: Record) -> None:
        self._config = config
        self._record = record

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Passes a report on."""
        # What is asked when a report is shown: it fails a test whose subtests failed, which are counted here.
        self._config.hook.pytest_report_teststatus(report=report, config=self._config)
        self._record.say_report(self._config, report)


def _send_reports(item: pytest.Item, record: Record) -> None:
    """Reports go to the parent, where everybody hears of them; in the child nobody else does.

    The hook's own list of plugins is what changes: all callers read it, those that leave a conftest.py out included.
    """
    manager = item.config.pluginmanager
    hook = manager.hook.pytest_runtest_logreport
    for implementation in hook.get_hookimpls():
        hook._remove_plugin(implementation.plugin)
    manager.register(_Reports(item.config, record), "firsttouch-reports")

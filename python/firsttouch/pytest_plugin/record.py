"""Results passed from a forked test to its parent through files: they survive a crash and never block."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import tempfile
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any, cast

import pytest

_NUMBERS = struct.Struct("=6Q")


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

    def fault(self) -> tuple[int, ...]:
        """Return the record of the fault handler."""
        found = _whole(self.fault_file)
        return cast("tuple[int, ...]", _NUMBERS.unpack_from(found)) if len(found) >= _NUMBERS.size else ()

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

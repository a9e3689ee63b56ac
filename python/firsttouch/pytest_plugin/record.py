"""What a child tells its parent, in files: a crash can't take back what was said, and no pipe can run full."""

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
    """Three files that parent and child share: a line for each report, the crash's traceback, the memory fault."""

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

    # What the child does.

    def begin(self) -> None:
        """Only the process that calls this can say anything."""
        self._child = os.getpid()

    def say(self, kind: str, content: Any) -> None:
        """One line. A fork inside the test that came back out of it ends here: its parent goes on."""
        if os.getpid() != self._child:
            os._exit(1)
        self._lines.write(json.dumps([kind, content], default=repr, skipkeys=True).encode() + b"\n")

    def say_report(self, config: pytest.Config, report: pytest.TestReport) -> None:
        """A report in pytest's own serial form."""
        self.say("report", config.hook.pytest_report_to_serializable(config=config, report=report))

    def say_warning(self, warning: warnings.WarningMessage) -> None:
        """A warning; its class by name."""
        kind = warning.category
        where = [warning.filename, warning.lineno]
        self.say("warning", [str(warning.message), kind.__module__, kind.__qualname__, *where])

    # What the parent does.

    def said(self) -> Iterator[tuple[str, Any]]:
        """The lines that the child completed."""
        for line in _whole(self._lines).split(b"\n")[:-1]:
            kind, content = json.loads(line)
            yield kind, content

    def trace(self) -> str:
        """What faulthandler wrote."""
        return _whole(self.trace_file).decode(errors="replace")

    def fault(self) -> tuple[int, ...]:
        """What the fault's handler wrote."""
        found = _whole(self.fault_file)
        return cast("tuple[int, ...]", _NUMBERS.unpack_from(found)) if len(found) >= _NUMBERS.size else ()

    @staticmethod
    def report(config: pytest.Config, data: dict[str, Any]) -> pytest.TestReport:
        """A report as it was before it became JSON, which knows no tuples."""
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
        """The warning again, as a plain one if its class can't be found or made."""
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

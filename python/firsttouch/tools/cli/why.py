"""`firsttouch why`: what the resident memory of a program or a process is, and what would bring it down."""

from __future__ import annotations

import os
import select
import shlex
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from _firsttouch_start import speak
from firsttouch._firsttouch import SMALL_LIMIT
from firsttouch.tools.cli import output, program
from firsttouch.tools.cli.output import BadUsageError, Output, Parser

if TYPE_CHECKING:
    from firsttouch.tools.cli.program import Program
    from firsttouch.tools.resident import Look, Process

_USAGE = """firsttouch why [options] script.py | -m module | -c code | program
           [arguments of the program]
       firsttouch why [options] PID"""

_DESCRIPTION = """\
Say what the resident memory of a program is: arrays by the line that made them,
Python's objects, what malloc and other allocators hold and what of it is free,
libraries, files and stacks. A program is started as by `firsttouch run`, and
shown at its peak and at its end; a process as it is now.
"""

_EXAMPLES = f"""\
for example:
  firsttouch why script.py data.csv
  firsttouch why --json why.json script.py     every part, in bytes
  firsttouch why 4711                          a process that runs already
  firsttouch why --watch 2 4711                again every two seconds
  firsttouch why --lines --watch 2 4711        with lines of what it makes now
  firsttouch why --plot why.png script.py      as a picture

The process itself is not stopped. Lines are known of arrays from {SMALL_LIMIT >> 10} KiB on,
where the process was started by firsttouch why or firsttouch run --lines, or of
those that it makes after firsttouch why --lines.
"""

#: The code that a running process is asked to run. It removes this file, or adds to it why it cannot record.
_SCRIPT = """\
import os, sys
try:
    if "numpy" not in sys.modules:
        raise RuntimeError("it has not imported NumPy")
    import firsttouch
    import _firsttouch_start
    _firsttouch_start.record_lines(is_late=True)
    os.unlink({file!r})
except BaseException as error:
    with open({file!r}, "a") as file:
        file.write(str(error) or repr(error))
"""
#: Seconds within which a process that runs Python code does it.
_PATIENCE = 2.0
#: Seconds between two looks at the size of a program.
_STEP = 0.01
#: A new peak is looked at if it is higher by this factor, or if the size has settled on it.
_HIGHER = 1.1
#: Of two looks that differ by less than this factor, the first is the peak's: later a pool may keep what was freed.
_SAME = 1.005
#: Looks take at most this part of the time in processor time, and so many seconds at the beginning.
_PART, _CREDIT = 0.03, 0.5
#: Seconds after which it is looked at in any case, as its end may come without notice.
_AT_LEAST = 1.0


def main(words: Sequence[str]) -> int:
    """Look at a process, or run a program and look at it; returns the program's exit status."""
    given, found = program.parse(_parser(), words)
    if sys.platform != "linux":
        raise BadUsageError("why: it reads what memory is for from Linux's /proc, which this system does not have")
    out = output.checked(given, "why", "numpy", "rich")
    if found.words[0].isdecimal() and not os.path.exists(found.words[0]):
        return _of_process(int(found.words[0]), given.watch, given.lines, out)
    if given.watch is not None or given.lines:
        raise BadUsageError("why: --watch and --lines are for a running process: firsttouch why --watch 2 PID")
    return _of_program(found, out)


def _parser() -> Parser:
    parser = Parser("why", _DESCRIPTION, _USAGE, _EXAMPLES)
    parser.add_argument("--watch", type=_seconds, metavar="SECONDS", help="look at a process again and again")
    parser.add_argument("--lines", action="store_true", help="have a process record lines from now on (Python 3.14)")
    output.add(parser, plot=True, html=True)
    return parser


def _seconds(text: str) -> float:
    try:
        if 0 < (seconds := float(text)) < 1e6:
            return seconds
    except ValueError:
        pass
    raise BadUsageError(f"why: --watch takes seconds, more than 0, not {text!r}")


def _of_process(number: int, watch: float | None, lines: bool, out: Output) -> int:
    from firsttouch.tools import resident
    from firsttouch.tools.reasons import Reasons

    process, looks = resident.Process(number), 0
    try:
        if lines and process.table() is None:
            _record_lines(number)
        while looks == 0 or watch is not None:
            time.sleep(watch if watch and looks else 0)
            Reasons(f"{number} ({process.command()})", process.look()).show(out)
            if sys.stdout is not None:
                sys.stdout.flush()
            looks += 1
    except (FileNotFoundError, ProcessLookupError):
        if looks == 0:
            raise BadUsageError(f"why: there is no process {number}, or it has ended") from None
        speak.line(f"process {number} has ended")
    except PermissionError:
        raise BadUsageError(f"why: process {number} is another user's, or protected: try sudo") from None
    finally:
        process.close()
    return 0


def _record_lines(number: int) -> None:
    """Have a process record the lines of its arrays from now on, or once its main thread runs Python code again."""
    import re
    import tempfile

    refused = f"why: cannot record lines in process {number}"
    with open(f"/proc/{number}/maps", encoding="utf-8", errors="replace") as maps:
        found = re.search(r"/(?:lib)?python(3\.\d+[td]*)[^/]*$", maps.read(), re.MULTILINE)
    theirs, ours = found[1] if found else "no", f"3.{sys.version_info[1]}{sys.abiflags}"
    if theirs != ours or not hasattr(sys, "remote_exec"):
        need = "both have to be the same, from 3.14 on; firsttouch run --lines records lines from the start"
        raise BadUsageError(f"{refused}: it runs {theirs} CPython, and this command {ours}; {need}")
    owner, said, ends = os.stat(f"/proc/{number}").st_uid, "", time.monotonic() + _PATIENCE
    try:
        handle, name = tempfile.mkstemp(".py", "firsttouch-why-", "/tmp")
    except OSError as error:
        raise BadUsageError(f"{refused}: {error}") from None
    script = _SCRIPT.format(file=name)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(script)
            os.fchown(handle, owner, -1)
        if not os.path.exists(f"/proc/{number}/root{name}"):
            raise RuntimeError("its /tmp is another, as in a container; run firsttouch why --lines inside of it")
        vars(sys)["remote_exec"](number, name)
        while not said:
            if time.monotonic() > ends:
                return speak.line(f"process {number} will record lines once its main thread runs Python code again")
            time.sleep(_STEP)
            with open(name, encoding="utf-8") as written:
                said = written.read().removeprefix(script)
    except FileNotFoundError:  # it has run
        return None
    except PermissionError:
        said = "the system does not permit it (ptrace); try sudo"
    except (RuntimeError, OSError) as error:
        said = str(error)
    os.unlink(name)
    raise BadUsageError(f"{refused}: {said}")


def _of_program(found: Program, out: Output) -> int:
    from firsttouch.tools.reasons import Reasons

    watched = _Watched()
    settings = {"quiet": True, "lines": True, "watched": os.getpid()}
    path, words = (found.executable, found.words) if found.executable else ("", program.python(found, "why"))

    def start() -> NoReturn:
        program.become(path or words[0], words, program.environment(settings))

    status = program.wait_for(start, watched.wait)
    if watched.peak is None or watched.last is None:
        speak.line("no figures: the program ended before it could be looked at")
        return program.passed_on(status)
    if sys.stdout is not None:
        sys.stdout.flush()
    reasons = Reasons(shlex.join(found.words), watched.peak, watched.last, watched.saw_end)
    reasons.show(out, sys.stderr)
    return program.passed_on(status)


class _Watched:
    """Waits for a child, and looks at it when its memory reaches a new peak, and at its end."""

    def __init__(self) -> None:
        self.peak: Look | None = None
        self.last: Look | None = None
        self.saw_end = False
        self._credit = _CREDIT

    def wait(self, child: int) -> int:
        """Return the status of the child once it has ended."""
        from firsttouch.tools import resident  # while the child starts

        handle = os.pidfd_open(child)
        ends = select.poll()
        ends.register(handle, select.POLLIN)
        process, ours, before, looked = resident.Process(child), _command(os.getpid()), 0, time.monotonic()
        try:
            while not ends.poll(_STEP * 1000):
                if self.saw_end or (ours and _command(child) == ours):
                    continue  # it ends, or is still a copy of this process
                ours = b""
                size, now = process.size(), time.monotonic()
                if process.is_ending:
                    self.saw_end = self._look(process)
                    process.let_end()
                elif self._credit > 0:
                    highest = self.peak.resident if self.peak else 0
                    has_settled = size > highest * _SAME and abs(size - before) < size / 500
                    if size > highest * _HIGHER or has_settled or now - looked > _AT_LEAST:
                        self._look(process)
                        looked = now
                before = size
                self._credit += _STEP * _PART
        finally:
            process.close()
            os.close(handle)
        return os.waitpid(child, 0)[1]

    def _look(self, process: Process) -> bool:
        began = time.process_time()
        try:
            self.last = process.look()
        except (OSError, ValueError):  # it ends
            return False
        if self.peak is None or self.last.resident > self.peak.resident * _SAME:
            self.peak = self.last
        self._credit -= time.process_time() - began
        return True


def _command(number: int) -> bytes:
    with open(f"/proc/{number}/cmdline", "rb") as file:
        return file.read()

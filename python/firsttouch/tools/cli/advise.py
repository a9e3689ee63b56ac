"""`firsttouch advise`: say from one run what pooled memory would save, in words and a table.

The native module estimates it at the end of the traced process: what glibc took fresh from the system for the requests,
and what a pool would have, at the cost that is measured there; in a range, as that depends on the caches.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from _firsttouch_start import speak
from firsttouch._firsttouch import SMALL_LIMIT
from firsttouch._internal import units
from firsttouch.tools.cli import files, output, program
from firsttouch.tools.cli.output import BadUsageError, Output, Parser

if TYPE_CHECKING:
    from firsttouch.tools.measuring.report import Table

_USAGE = """firsttouch advise [options] script.py | -m module | -c code
           [arguments of the program]
       firsttouch advise [options] trace.ft"""

_DESCRIPTION = """\
Run a program once, on NumPy's own memory, and estimate how much time pooled
memory would save and which source lines would benefit most. `firsttouch
compare` measures it instead.
"""

_EXAMPLES = """\
for example:
  firsttouch advise script.py data.csv
  firsttouch advise --json advice.json -m package.heat
  firsttouch advise --html advice.html script.py
  firsttouch advise heat.ft         a file of firsttouch trace

The estimate is that of the memory that arrays, bytes, lists and the like of 16
KiB or more take fresh from the system in the started process, at the cost
measured there. Child processes are not included.
"""

#: What a trace says, by names; sizes are in bytes, times in seconds.
Trace = Mapping[str, Any]

#: The version of traces that is read.
_VERSION = 1
#: Processor time of child processes, as a fraction of the program's, from which on it is worth mentioning.
_CHILDREN = 0.1
#: Letters of a path: a table with it fits 80 columns.
_LONG = 36
#: Lines that are shown.
_SHOWN = 10


def main(words: Sequence[str]) -> int:
    """Trace the program and print the advice, or that of a trace. Returns the program's exit status."""
    given, found = program.parse(_parser(), words)
    if sys.platform == "win32":
        estimate = "what pooled memory saves is estimated for glibc, which Windows does not have"
        raise BadUsageError(f"advise: {estimate}; firsttouch compare measures it")
    out = output.checked(given, "advise", "numpy", "rich")
    if files.is_trace(found.words[0]):
        return _of_trace(found.words, out)
    command = program.python(found, "advise")
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        file = os.path.join(folder, "advise.ft")
        settings = {"trace": file, "quiet": True, "advise": True}
        status = program.wait_for(lambda: program.start(command, settings))
        try:
            trace = read(file)
        except FileNotFoundError:
            if not files.rank():  # the other ranks of MPI are not traced
                speak.line(
                    "no advice: NumPy was never imported in the process that was started;"
                    " firsttouch compare measures child processes, too, and with --all other memory than NumPy's"
                )
        except (ValueError, OSError) as error:
            speak.line(f"no advice: {error}")
        else:
            _say(trace, shlex.join(found.words), out)
    return program.passed_on(status)


def _of_trace(given: Sequence[str], out: Output) -> int:
    if len(given) > 1:
        raise BadUsageError(f"advise: unexpected argument {given[1]}: it takes one trace")
    try:
        trace = read(given[0])
    except (ValueError, OSError) as error:
        raise BadUsageError(f"advise: {given[0]}: {speak.reason(error)}") from None
    _say(trace, "", out)
    return 0


def _parser() -> Parser:
    parser = Parser("advise", _DESCRIPTION, _USAGE, _EXAMPLES)
    output.add(parser, html=True)
    return parser


def _say(trace: Trace, program: str, out: Output) -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
    said, table = conclusion(trace, program), gaining_lines(trace)
    out.page([table] if table.rows else [], [], [said])
    if out.prints and sys.stderr is not None:
        screen = output.console(sys.stderr)
        screen.print(f"firsttouch: {said}")
        if table.rows and not out.quiet:
            table.show(screen)
    out.save(lambda: {"advice": said, **trace})


def read(file: str) -> Trace:
    """Read a trace. Raises :exc:`ValueError` if the file is none, and :exc:`OSError` if it cannot be read."""
    with open(file, encoding="utf-8", errors="replace") as opened:
        text = opened.read()
    if not text:
        raise ValueError("the program was killed, ended by os._exit or became another, before its trace was written")
    try:
        found: Trace = json.loads(text)
        version = found["trace"]
    except (ValueError, TypeError, KeyError):
        raise ValueError("the file is not a firsttouch trace") from None
    if version != _VERSION:
        raise ValueError(f"the trace has format version {version}, but this firsttouch reads version {_VERSION}")
    return found


def conclusion(trace: Trace, program: str) -> str:
    """Return the conclusion, and what limits it. A trace that is read from a file has no program."""
    said, children, own = _judgement(trace, program), trace["children_seconds"], trace["processor"]
    if children > _CHILDREN * own:
        said = "what there is to gain is not known" if children > own else said
        took = f"{units.seconds(children)} of processor time beside its own {units.seconds(own)}"
        said += f"; child processes took {took} and were not examined: firsttouch compare measures them all"
    if why := trace["facts"].get("arrays_only"):
        said += f"; only arrays were traced, not bytes, lists and the like: {why}"
    return said


def _judgement(trace: Trace, program: str) -> str:
    if not trace["lines"]:
        return f"nothing to gain: the program made no array and no buffer of {SMALL_LIMIT >> 10} KiB or more"
    (low, high), processor = trace["gain_seconds"], trace["processor"]
    if high < 0:
        more, share = units.seconds(-low), units.share(-low, processor)
        return f"nothing to gain from pooled memory: it would take up to {more} ({share}) more of processor time"
    most, all_of_it = units.seconds(high), f"of {units.seconds(processor)} of processor time"
    share = units.share(high, processor)
    if trace["verdict"] == "certain":
        part = f"{units.seconds(low)} to {most} ({units.shares(low, high, processor)}) {all_of_it}"
        return f"pooled memory would save {part}" + (f": firsttouch run {program}" if program else "")
    if trace["verdict"] == "perhaps":
        return f"pooled memory may save up to {most} ({share}) {all_of_it}; firsttouch compare tells"
    return f"nothing to gain from pooled memory: at most {most} ({share}) {all_of_it}"


def gaining_lines(trace: Trace) -> Table:
    """Return the lines that would gain most, each above the line of a library through which it made its blocks."""
    from firsttouch.tools.measuring.report import Table

    processor = trace["processor"]
    gaining = [line for line in trace["lines"] if line["avoidable"] > 0.001 * processor]
    table = Table("", ("line", "blocks", "bytes", "would save", "of the time"))
    for line in sorted(gaining, key=lambda line: -line["avoidable"])[:_SHOWN]:
        place = output.place(line["file"], line["line"]) if line["file"] else "(no Python code)"
        saved, part = units.seconds(line["avoidable"]), units.share(line["avoidable"], processor)
        table.rows.append((_end(place), f"{line['count']:,}", units.size(line["bytes"]), saved, part))
        if line["library"]:
            table.rows.append((f"  in {_end(line['library'], _LONG - 5)}", "", "", "", ""))
    return table


def _end(text: str, most: int = _LONG) -> str:
    return text if len(text) <= most else f"...{text[3 - most :]}"

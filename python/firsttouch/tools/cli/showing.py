"""Prints the tables of traces, or writes them as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sysconfig
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from _firsttouch_start import speak, units
from firsttouch.tools.cli import output
from firsttouch.tools.cli.parser import BadUsageError

if TYPE_CHECKING:
    from firsttouch.tools.trace.lines import Summary


def needs_rich(command: str, json_file: str | None) -> None:
    """Reject, before the program runs, a table that could not be printed."""
    if json_file != "-":
        output.need(command, "rich", otherwise="; --json - prints JSON without it")


def save_json(command: str, name: str, content: Mapping[str, Any]) -> None:
    """Write to a file, or to standard output for -."""
    text = json.dumps(content, indent=2) + "\n"
    if name == "-":
        print(text, end="")  # does nothing if standard output is closed
        return
    try:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise BadUsageError(f"{command}: cannot write {name}: {speak.reason(error)}") from None


def wrapped(sentence: str, stream: TextIO | None) -> str:
    """Return the sentence broken between words on a terminal, or where COLUMNS is set; elsewhere it is one line."""
    if stream is None or not (stream.isatty() or "COLUMNS" in os.environ):
        return sentence
    width = shutil.get_terminal_size().columns
    return textwrap.fill(sentence, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO | None) -> None:
    """Print a table, words to the left and figures to the right; as wide as needed if not on a terminal."""
    if stream is None:  # closed
        return
    from rich.console import Console

    from firsttouch.tools.measuring.console import grid

    width = None if stream.isatty() else 160
    out = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    grid(None, columns, rows, out)


def place(line: Any) -> str:
    """Return file and line, the file as it is imported if it is installed, or relative to the current directory."""
    if not line.file:
        return str(line.place)
    if not os.path.isabs(line.file):
        return f"{line.file}:{line.line}"
    # The installed packages first: their folder is often below the current one, and its path is long.
    folders = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    with contextlib.suppress(OSError):  # it may have been removed
        folders.append(os.getcwd())
    for folder in folders:
        if line.file.startswith(os.path.join(folder, "")):
            return f"{os.path.relpath(line.file, folder)}:{line.line}"
    return f"{line.file}:{line.line}"


def summary(found: Summary, most: int, stream: TextIO | None) -> None:
    """Print where large arrays were allocated."""
    if stream is None:
        return
    facts = found.facts["facts"]
    about = (
        f"{found.facts['allocations']:,} arrays, at most {units.size(found.facts['peak_in_use'])} at once;"
        f" on {facts.get('allocator', 'unknown memory')} in {units.seconds(found.wall)}"
    )
    stream.write(wrapped(about, stream) + "\n")
    rows = [
        (
            place(line),
            f"{line.count:,}",
            units.size(line.bytes),
            units.seconds(line.median_lifetime),
            units.share(line.seconds, found.processor),
        )
        for line in found.lines[:most]
    ]
    if found.lines:
        table(("line", "arrays", "bytes", "median lifetime", "kernel's share"), rows, stream)
        if len(found.lines) > most:
            more = len(found.lines) - most
            stream.write(f"{units.count(more, 'more line')}; --lines {len(found.lines)} shows them all\n")
        part = units.share(found.seconds, found.processor)
        in_all = (
            f"in all {part} of the processor time in the kernel for arrays of 64 KiB or more"
            " (estimated from page faults)"
        )
        stream.write(wrapped(in_all, stream) + "\n")
    else:
        known = "" if found.facts["complete"] else "as far as was recorded, "
        stream.write(f"{known}no array had 64 KiB or more\n")
    if not found.facts["complete"]:
        stream.write("the trace is truncated: only what was recorded is shown\n")

"""Run a cell and measure it."""

from __future__ import annotations

import html
import resource
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import firsttouch
from _firsttouch_start import units
from firsttouch._firsttouch import Allocator
from firsttouch._internal import process_memory

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class CellError(Exception):
    """Ends the outer cell after the inner one failed; the inner traceback is already shown above the report."""

    def _render_traceback_(self) -> list[str]:
        return []


@dataclass(frozen=True)
class CellReport:
    """The cost of a cell; a table in a notebook, lines in a terminal."""

    rows: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return "\n".join(f"{label:14} {value}" for label, value in self.rows)

    def _repr_html_(self) -> str:
        left = 'style="text-align:left"'
        rows = [f"<tr><th {left}>{label}</th><td {left}>{html.escape(value)}</td></tr>" for label, value in self.rows]
        return f"<table>{''.join(rows)}</table>"


def measured(
    shell: InteractiveShell, cell: str, allocator: Allocator | None
) -> tuple[CellReport, BaseException | None]:
    """Run ``cell`` in the notebook's namespace; return its report and its exception, if any."""
    peak_known, failed = _restart_peak(), firsttouch.last_failure()
    before, used, start = (
        firsttouch.stats(allocator or "process"),
        resource.getrusage(resource.RUSAGE_SELF),
        time.perf_counter(),
    )
    result: Any = shell.run_cell(cell, silent=_is_quiet(shell, cell))
    wall = time.perf_counter() - start
    after, then = firsttouch.stats(allocator or "process"), resource.getrusage(resource.RUSAGE_SELF)
    user, kernel = then.ru_utime - used.ru_utime, then.ru_stime - used.ru_stime
    seconds = units.seconds
    of_kernel = f"{seconds(kernel)} of it in the kernel"
    rows = [
        ("time", f"{seconds(wall)}; {seconds(user + kernel)} of processor time, {of_kernel}"),
        ("allocator", repr(allocator)),
        *_arrays(before, after),
        ("page faults", f"{then.ru_minflt - used.ru_minflt:,}"),
        ("resident", f"{units.size(process_memory.status('VmRSS'))} now{_peak() if peak_known else ''}"),
    ]
    failure = firsttouch.last_failure()
    if failure is not None and failure != failed:
        rows.append(("last failure", " ".join(str(failure).split())))
    return CellReport(tuple(rows)), result.error_before_exec or result.error_in_exec


def _is_quiet(shell: InteractiveShell, cell: str) -> bool:
    """Return whether a semicolon at the end hides the value; IPython looks at the whole input, which is a magic."""
    try:
        return bool(shell.displayhook.semicolon_at_end_of_expression(shell.transform_cell(cell)))
    except Exception:  # a mistake that shows when the cell runs
        return False


def _arrays(before: firsttouch.process.Stats, after: firsttouch.process.Stats) -> list[tuple[str, str]]:
    served = after.allocations - before.allocations
    if not served:
        return [("large arrays", f"none of {units.size(after.small_limit)} or more, or not counted by this allocator")]
    touched = after.first_touched_bytes - before.first_touched_bytes
    again = after.recycled_bytes - before.recycled_bytes
    so_far = f", at most {units.size(after.peak_in_use)} so far" if after.peak_in_use else ""
    in_use = ("in use", f"{units.size(after.in_use)} now{so_far}")
    if not touched + again:
        return [("large arrays", f"{served:,}; this allocator does not tell which memory was fresh"), in_use]
    recycled = units.share(after.recycled - before.recycled, served)
    return [
        ("large arrays", f"{served:,}, {recycled} on recycled memory"),
        ("first touched", f"at most {units.size(touched)}"),
        ("recycled", units.size(again)),
        in_use,
    ]


def _restart_peak() -> bool:
    """Reset the kernel's peak of resident memory, which not every container allows."""
    try:
        process_memory.reset_peak()
    except OSError:
        return False
    return True


def _peak() -> str:
    return f", at most {units.size(process_memory.peak())} in this cell"

"""Rich display of allocators in notebooks and IPython: the expression, and the state of each level."""

from typing import Any

from _firsttouch_start import units
from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator

#: The statistics to show, with their labels; the names of byte counts come first.
_BYTES = {"in_use": "in use", "peak_in_use": "peak", "idle": "idle", "mapped": "mapped", "purged_bytes": "given back"}
_COUNTS = {"blocks": "blocks", "allocations": "allocations", "recycled": "recycled", "failures": "failures"}


def escape(text: str) -> str:
    """Escape text for HTML, as :func:`html.escape`; importing `html` loads a table of all entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def levels(allocator: Allocator) -> list[Allocator]:
    """Return the allocator, its upstream, and so on down to the source."""
    found: list[Allocator] = []
    at: Allocator | None = allocator
    while at is not None:
        found.append(at)
        at = _firsttouch.upstream(at)
    return found


def state(allocator: Allocator) -> dict[str, str]:
    """Return the state of one level in words; empty if it keeps no statistics."""
    if _firsttouch.is_tracked(allocator):
        return _tally(_firsttouch.tally(allocator))
    found = _firsttouch.stats(allocator)
    if not found["allocations"] and not found["failures"]:
        return {}
    rows = {label: units.size(found[name]) for name, label in _BYTES.items()}
    rows |= {label: f"{found[name]:,}" for name, label in _COUNTS.items()}
    return {
        label: text for label, text in rows.items() if text not in ("0", "0 bytes") or label in ("in use", "blocks")
    }


def _tally(found: dict[str, Any]) -> dict[str, str]:
    rows = {"in use": "live_bytes", "peak": "peak_bytes", "ever": "allocated_bytes"}
    counts = {"blocks": "live_blocks", "allocations": "allocations"}
    shown = {label: units.size(found[name]) for label, name in rows.items()}
    return shown | {label: f"{found[name]:,}" for label, name in counts.items()}


def _name(level: Allocator) -> str:
    """Return the level's own part of the expression: its name, and its options without the upstream."""
    return repr(level) if _firsttouch.upstream(level) is None else _firsttouch.level(level)


def html_of(self: Allocator) -> str:
    """Return a table for notebooks."""
    rows = []
    for level in levels(self):
        found = state(level) or {"state": "no statistics, or no requests yet"}
        rows.append(f'<tr><th colspan="2" style="text-align:left"><code>{escape(_name(level))}</code></th></tr>')
        rows += [f"<tr><td>{label}</td><td>{escape(text)}</td></tr>" for label, text in found.items()]
    return f"<table><caption><code>{escape(repr(self))}</code></caption>{''.join(rows)}</table>"


def pretty(self: Allocator, printer: Any, cycle: bool) -> None:  # noqa: ARG001
    """Print lines for IPython; the plain `repr` stays the expression."""
    printer.text(repr(self))
    for level in levels(self):
        found = state(level)
        if not found:
            continue
        printer.break_()
        printer.text(f"  {_name(level)}")
        for label, text in found.items():
            printer.break_()
            printer.text(f"    {label:12} {text}")

"""Formats an inspection as text and as a table for notebooks."""

from __future__ import annotations

from _firsttouch_start import units
from firsttouch._internal.display import escape
from firsttouch.inspection.figures import Figures
from firsttouch.placement.results import Receipt

#: Figures in the order of the text; the last three are omitted if they are zero.
FIGURES = {
    "absent": "not there yet",
    "zero_page": "shared zero page",
    "small": "small pages",
    "huge": "huge pages",
    "swapped": "swapped",
    "locked": "locked",
    "cached": "page cache only",
}


def head(found: Figures) -> dict[str, str]:
    """Return what is known without looking at pages."""
    begin = f"{units.size(found.offset)} into its page" if found.offset else "at the start of a page"
    rows = {
        "address": f"{found.address:#x}, aligned to {units.size(found.alignment)}, {begin}",
        "allocator": "none: NumPy did not allocate it" if found.allocator is None else repr(found.allocator),
    }
    if found.shared:
        rows["shared"] = "processes that map it see the same memory"
    if found.receipt is not None:
        rows |= _receipt(found.receipt)
    total = units.size(found.pages * found.page_size)
    rows["pages"] = f"{found.pages:,} of {units.size(found.page_size)}: {total}"
    return rows


def _receipt(receipt: Receipt) -> dict[str, str]:
    """Return what was requested, what was granted, and the reasons for the rest."""
    threads = f" by {receipt.threads} threads" if receipt.threads > 1 else ""
    granted = [
        f"huge={receipt.huge!r}" if receipt.huge else "",
        f"numa={receipt.numa!r}" if receipt.numa else "",
        f"populated{threads}" if receipt.populated else "",
        "locked" if receipt.locked else "",
    ]
    rows = {"asked": receipt.asked or "pages", "granted": ", ".join(filter(None, granted)) or "small pages, lazily"}
    return rows | ({"why not": "; ".join(receipt.why_not)} if receipt.why_not else {})


def figures(found: Figures) -> list[tuple[str, str, str, str]]:
    """Return name, size, share of all pages, and source of each figure."""
    total = found.pages * found.page_size
    rows = []
    for name, label in FIGURES.items():
        size = getattr(found, name)
        if name == "cached" and not size:
            continue
        rows.append((label, _size(size), _share(size, total), found.sources[name]))
        if name == "huge" and size is None and found.real is not None:
            rows.append(("small or huge", _size(found.real), _share(found.real, total), found.sources["real"]))
    if found.nodes is None:
        return [*rows, ("NUMA nodes", "?", "", found.sources["nodes"])]
    real = sum(found.nodes.values())
    source = found.sources["nodes"]
    for node, size in found.nodes.items():
        rows.append((f"on node {node}" if node >= 0 else "node not told", _size(size), _share(size, real), source))
    return rows


def _size(size: int | None) -> str:
    return "?" if size is None else units.size(size) if size else "0"


def _share(size: int | None, total: int) -> str:
    return units.share(size, total) if size else ""


def title(found: Figures) -> str:
    """Return the array in a line."""
    shape = " x ".join(f"{count:,}" for count in found.shape) or "a single element"
    return f"array of {found.dtype}, {shape}: {units.size(found.nbytes)}"


def text(found: Figures) -> str:
    """Return lines for a terminal."""
    lines = [title(found), *(f"  {label:17} {value}" for label, value in head(found).items())]
    for label, size, share, source in figures(found):
        lines.append(f"  {label:17} {size:>12} {share:>7}   {source}".rstrip())
    return "\n".join(lines)


def table(found: Figures) -> str:
    """Return a table for a notebook."""
    left, right = 'style="text-align:left"', 'style="text-align:right"'
    rows = [
        f'<tr><th {left}>{label}</th><td colspan="3" {left}>{escape(value)}</td></tr>'
        for label, value in head(found).items()
    ]
    rows += [
        f"<tr><th {left}>{label}</th><td {right}>{size}</td><td {right}>{share}</td>"
        f"<td {left}>{escape(source)}</td></tr>"
        for label, size, share, source in figures(found)
    ]
    return f"<table><caption>{escape(title(found))}</caption>{''.join(rows)}</table>"

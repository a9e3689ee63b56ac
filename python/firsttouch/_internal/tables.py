"""Small tables for notebooks."""

from collections.abc import Iterable

_LEFT, _RIGHT = 'style="text-align:left"', 'style="text-align:right"'


def html(title: str, rows: Iterable[tuple[str, ...]], notes: Iterable[str] = ()) -> str:
    """Return a table: in each row a label, then a text, or a figure with texts that belong to it."""
    lines = []
    for label, value, *rest in rows:
        cells = f'<td colspan="3" {_LEFT}>{_escaped(value)}</td>'
        if rest:
            texts = "".join(f"<td {_RIGHT if at == 0 else _LEFT}>{_escaped(text)}</td>" for at, text in enumerate(rest))
            cells = f"<td {_RIGHT}>{_escaped(value)}</td>{texts}"
        lines.append(f"<tr><th {_LEFT}>{_escaped(label)}</th>{cells}</tr>")
    lines += [f'<tr><td colspan="4" {_LEFT}>{_escaped(note)}</td></tr>' for note in notes]
    return f"<table><caption>{_escaped(title)}</caption>{''.join(lines)}</table>"


def _escaped(text: str) -> str:
    """Escape text as :func:`html.escape`; importing `html` loads a table of all entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")

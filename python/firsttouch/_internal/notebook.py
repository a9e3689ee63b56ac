"""Small tables for notebooks."""

from collections.abc import Iterable


def table(title: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return rows of texts, the first of each a label, as a table in HTML."""
    from html import escape  # it loads all entities that there are

    cells = (
        f"<th>{escape(label)}</th>" + "".join(f"<td>{escape(text)}</td>" for text in rest) for label, *rest in rows
    )
    return f"<table><caption>{escape(title)}</caption>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

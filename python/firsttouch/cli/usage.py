"""Mistakes in what a command was asked."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class BadUsageError(Exception):
    """What the user asked for cannot be done; the message is the one line to print."""


def guess(word: str, known: "Iterable[str]") -> str:
    """Suggest the known word that is nearest, or nothing."""
    import difflib  # only for who misspells

    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""

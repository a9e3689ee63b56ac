"""What a misspelt word was meant to be."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, known: "Iterable[str]") -> str:
    """``" (did you mean pool?)"``, or nothing where no known word is near."""
    import difflib  # only for who misspells

    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""

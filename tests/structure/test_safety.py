"""What an unsafe block relies on stands beside it: a SAFETY comment that points at callers says what they promise.

The names of those callers, or of the contract that they keep, stand in backquotes, so that a reader can go and look.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[2] / "crates"
COMMENT = re.compile(r"//[ \t]*SAFETY:.*(?:\n[ \t]*//(?!/|!).*)*")
POINTS = re.compile(r"\bcallers?\b|\bpromises?\b", re.IGNORECASE)
SAYS_NOTHING = re.compile(r"`[^`]*`|\b(?:safety|the|of|callers?|promises?|as|for|its|their|it|see|at|in|and)\b|\W")


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Each SAFETY comment with the number of its first line."""
    for match in COMMENT.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, re.sub(r"\s*\n\s*//\s*", " ", match[0])


def wrong(comment: str) -> str | None:
    """What a comment lacks."""
    if not POINTS.search(comment):
        return None
    if "`" not in comment:
        return "does not name the callers"
    words = [word for word in re.findall(r"`[^`]*`|\w+", comment) if SAYS_NOTHING.sub("", word.lower())]
    return None if len(words) >= 2 else "does not say what they promise"


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("// SAFETY: the caller's promise.", "does not name the callers"),
        ("// SAFETY: the block is live (caller).", "does not name the callers"),
        ("// SAFETY: the promise of the caller (`take`).", "does not say what they promise"),
        ("// SAFETY: the block is live (the caller, `take`).", None),
        ("// SAFETY: the range was just mapped.", None),
    ],
)
def test_what_a_comment_lacks(comment: str, said: str | None) -> None:
    assert wrong(comment) == said


def test_comments_name_promises_and_callers() -> None:
    found = [
        f"{path.relative_to(CRATES)}:{line}: {said}: {comment}"
        for path in sorted(CRATES.glob("*/src/**/*.rs"))
        for line, comment in comments(path.read_text("utf-8"))
        if (said := wrong(comment))
    ]
    assert not found, "\n".join(found)

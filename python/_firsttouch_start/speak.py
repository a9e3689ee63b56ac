"""Writes lines or texts to the real standard error, the only output of a started process."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def line(text: str) -> None:
    """Write one line; line breaks in the text are replaced by spaces, and on a terminal it is broken between words."""
    text = f"firsttouch: {' '.join(text.split())}"
    try:
        width = os.get_terminal_size(sys.__stderr__.fileno()).columns if sys.__stderr__ else 0
    except (OSError, ValueError):  # it is no terminal, or closed
        width = 0
    if len(text) > width > 0:
        import textwrap

        text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    write(sys.__stderr__, f"{text}\n")


def failure(doing: str, error: BaseException) -> None:
    """Write one line about an error that must not reach the program."""
    line(f"{doing} failed: {type(error).__name__}: {error}")


def reason(error: BaseException) -> str:
    """Return the reason of an error, without the number and the file name that an OSError adds."""
    return getattr(error, "strerror", None) or str(error)


def write(stream: "TextIO | None", text: str) -> None:
    """Write to the stream's descriptor, bypassing its buffer, or not at all.

    A buffer that cannot be flushed would change the program's exit status to 120, and a descriptor that was closed
    before the start may by now be a file of the program's.
    """
    if stream is None:
        return
    try:
        stream.flush()
        descriptor = stream.fileno()
        data = text.encode(stream.encoding or "utf-8", "backslashreplace")
        while data:
            data = data[os.write(descriptor, data) :]
    except (OSError, ValueError):
        return

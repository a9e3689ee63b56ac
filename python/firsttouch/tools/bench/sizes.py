"""The sizes that an experiment takes: those of the user, or those that suit it and fit."""

from __future__ import annotations

from collections.abc import Sequence

from firsttouch import _firsttouch
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.measuring.machine import available
from firsttouch.tools.measuring.sizes import fitting, name

ROOM = 0.6  # the part of the free memory that an experiment may take


def parse(text: str) -> tuple[int, ...]:
    """Sizes between commas, in bytes, smallest first.

    Raises :exc:`ValueError` that names the one that is none.
    """
    sizes = {_firsttouch.parse_size(word.strip()) for word in text.split(",") if word.strip()}
    if not sizes:
        raise ValueError(f"--sizes {text!r}: give sizes, as in 4KiB,1MiB")
    if min(sizes) < 8:
        raise ValueError(f"--sizes: an array of {min(sizes)} bytes holds no number; give at least 8")
    return tuple(sorted(sizes))


def check(sizes: Sequence[int], experiment: str, arrays: int) -> None:
    """Raise :exc:`ValueError` where that many arrays of a size do not fit, with what fits."""
    if not sizes or max(sizes) * arrays <= available() * ROOM:
        return
    live = f"{arrays} such arrays live" if arrays > 1 else "one such array lives"
    raise ValueError(
        f"{experiment}: {name(max(sizes))} is too large: {live} at once, and {about(available())} are free; "
        f"up to {about(int(available() * ROOM) // arrays)} fit"
    )


def about(nbytes: int) -> str:
    """A size that is measured, rounded down."""
    return f"{(nbytes * 10 >> 30) / 10:g} GiB" if nbytes >= 1 << 30 else f"{nbytes >> 20} MiB"


def chosen(settings: Settings, full: Sequence[int], quick: Sequence[int], arrays: int) -> tuple[list[int], list[str]]:
    """The sizes to run, and a note about those left out for lack of memory."""
    if settings.sizes is not None:
        return list(settings.sizes), []
    return fitting(quick if settings.quick else full, arrays)

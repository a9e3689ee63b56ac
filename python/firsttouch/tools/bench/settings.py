"""The choices of an experiment's user, and the sizes and page kinds that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from _firsttouch_start import units
from firsttouch import _firsttouch
from firsttouch.tools.measuring.machine import available
from firsttouch.tools.measuring.sizes import ROOM, fitting, name


def _nobody(_done: float) -> None:
    """Discard the progress."""


@dataclass(frozen=True)
class Settings:
    """The argument of each experiment's `run`."""

    quick: bool = False
    """Run with few sizes and rounds, in ten to twenty seconds."""
    sizes: tuple[int, ...] | None = None
    """Array sizes in bytes; `None` for those that suit the experiment and the machine."""
    allocators: tuple[str, ...] = ()
    """Further allocators for experiments that compare allocators, as expressions that `install` accepts."""
    progress: Callable[[float], None] = _nobody
    """Called with the completed fraction, from 0 to 1."""


KINDS = {
    "np.zeros": "numpy_default()",
    "4 KiB pages": "pages()",
    "huge pages (THP)": 'pages(huge="thp")',
}


def parse(text: str) -> tuple[int, ...]:
    """Parse a comma-separated list of sizes, in bytes, smallest first.

    Raises :exc:`ValueError` with the invalid one.
    """
    sizes = {_firsttouch.parse_size(word.strip()) for word in text.split(",") if word.strip()}
    if not sizes:
        raise ValueError(f"--sizes {text!r}: give sizes, as in 4KiB,1MiB")
    if min(sizes) < 8:
        raise ValueError(f"--sizes: an array of {min(sizes)} bytes holds no item; give at least 8")
    return tuple(sorted(sizes))


def check(sizes: Sequence[int], experiment: str, arrays: int) -> None:
    """Raise :exc:`ValueError` if that many arrays of a size do not fit, with the largest size that does."""
    if not sizes or max(sizes) * arrays <= available() * ROOM:
        return
    live = f"{arrays} such arrays are live at once" if arrays > 1 else "one such array is live"
    raise ValueError(
        f"{experiment}: {name(max(sizes))} is too large: {live}, and {units.size(available())} are free; "
        f"up to {units.size(int(available() * ROOM) // arrays)} fit"
    )


def chosen(settings: Settings, full: Sequence[int], quick: Sequence[int], arrays: int) -> tuple[list[int], list[str]]:
    """Return the sizes to run, and a note about those left out for lack of memory."""
    if settings.sizes is not None:
        return list(settings.sizes), []
    return fitting(quick if settings.quick else full, arrays)

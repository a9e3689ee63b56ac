"""What the user of an experiment may choose, and the sizes and page kinds that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from _firsttouch_start import units
from firsttouch import _firsttouch
from firsttouch.tools.measuring.machine import available
from firsttouch.tools.measuring.sizes import fitting, name


def _nobody(_done: float) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Settings:
    """Given to each experiment's `run`."""

    quick: bool = False
    """A few sizes and rounds, in ten to twenty seconds."""
    sizes: tuple[int, ...] | None = None
    """Bytes of an array; `None`: what suits the experiment and the machine."""
    allocators: tuple[str, ...] = ()
    """More allocators to compare, as expressions that `install` takes; for the experiments that compare allocators."""
    progress: Callable[[float], None] = _nobody
    """Called with the part that is done, from 0 to 1."""


KINDS = {
    "np.zeros": "numpy_default()",
    "4 KiB pages": "pages()",
    "huge pages (THP)": 'pages(huge="thp")',
}


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
        f"{experiment}: {name(max(sizes))} is too large: {live} at once, and {units.size(available())} are free; "
        f"up to {units.size(int(available() * ROOM) // arrays)} fit"
    )


def chosen(settings: Settings, full: Sequence[int], quick: Sequence[int], arrays: int) -> tuple[list[int], list[str]]:
    """The sizes to run, and a note about those left out for lack of memory."""
    if settings.sizes is not None:
        return list(settings.sizes), []
    return fitting(quick if settings.quick else full, arrays)

"""What a block of code asks of memory, in figures that do not depend on how busy the machine is."""

from __future__ import annotations

import contextvars
from types import TracebackType
from typing import Literal

from _firsttouch_start import units
from firsttouch import _firsttouch
from firsttouch._internal import validation
from firsttouch._internal.validation import Size

#: Figures that are numbers of arrays; all others are bytes.
COUNTS = ("arrays", "kept_arrays", "recycled_arrays")
_WORDS = {
    "allocated": "allocated",
    "arrays": "made",
    "peak": "held at once",
    "largest": "for one array",
    "kept": "still held at the end",
    "kept_arrays": "still held at the end",
    "first_touched": "touched first",
    "recycled": "recycled",
    "recycled_arrays": "recycled",
}


class measure:
    """Measures what the arrays made in a block ask of memory; the figures are the :class:`Measured` it gives.

    Counted are arrays of 16 KiB and more (smaller ones stay with NumPy, on whose way nothing is counted) that NumPy or
    this package allocates while the block runs, under whatever allocator is current: each thread's, or with
    ``threads="own"`` only those that this thread asks for. Not counted are :func:`firsttouch.numpy_default`'s, which is
    NumPy left alone, and those of :func:`firsttouch.shared`. Blocks nest and overlap, in threads and tasks: each counts
    what happens while it is open, and its peak is that of its own arrays. Processes that it starts are not counted.

    Memory kept idle is given back when the outermost block begins, and does not decay while one is open. So figures
    depend on what the code asks for, not on what ran before or how long it took.

    >>> with measure() as m:
    ...     y = (x - x.mean()) / x.std()
    >>> m.peak, m.allocated
    """

    def __init__(self, *, threads: Literal["all", "own"] = "all") -> None:
        self._only_own = validation.one_of("threads", threads, ("all", "own")) == "own"
        self._open: list[Measured] = []

    def __enter__(self) -> Measured:
        here, everywhere = _firsttouch.get_allocator(), contextvars.Context().run(_firsttouch.get_allocator)
        cold = [allocator for allocator in (here, everywhere) if allocator is not None]
        measured = Measured(_firsttouch.GaugeRegion(self._only_own, cold))
        self._open.append(measured)
        return measured

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._open:
            raise RuntimeError("this measure() was not entered, or has ended already")
        self._open.pop()._end()


class Measured:
    """What a block asked of memory, in bytes unless said; while it runs, what it has asked so far."""

    def __init__(self, region: _firsttouch.GaugeRegion) -> None:
        self._region = region
        self._found: dict[str, int | None] | None = None

    def _end(self) -> None:
        self._found = self._region.close()

    def as_dict(self) -> dict[str, int | None]:
        """All figures, for JSON and tables."""
        found = self._region.look() if self._found is None else self._found
        return {} if found is None else dict(found)

    def _count(self, name: str) -> int:
        return self.as_dict()[name] or 0

    @property
    def allocated(self) -> int:
        """Asked for by all arrays made in the block, with what arrays grew by."""
        return self._count("allocated")

    @property
    def arrays(self) -> int:
        """Number of arrays made in the block."""
        return self._count("arrays")

    @property
    def peak(self) -> int:
        """The most that arrays made in the block held at once."""
        return self._count("peak")

    @property
    def largest(self) -> int:
        """Of the largest array."""
        return self._count("largest")

    @property
    def kept(self) -> int:
        """What arrays made in the block hold still."""
        return self._count("kept")

    @property
    def kept_arrays(self) -> int:
        """Number of arrays made in the block that live still."""
        return self._count("kept_arrays")

    @property
    def first_touched(self) -> int | None:
        """Memory served that the kernel has to make real; ``None`` where not all of it came from pools."""
        return self.as_dict()["first_touched"]

    @property
    def recycled(self) -> int | None:
        """Memory served that a pool had kept; ``None`` where not all of it came from pools, or not only for us.

        That is where ``threads="own"`` and other threads ask the same pool: it counts for all of them.
        """
        return self.as_dict()["recycled"]

    @property
    def recycled_arrays(self) -> int | None:
        """Number of arrays served wholly from kept memory; ``None`` where not all came from pools."""
        return self.as_dict()["recycled_arrays"]

    def assert_at_most(self, **limits: Size) -> None:
        """Raises :exc:`AssertionError` where a figure is above its limit: bytes or text like ``"10 MiB"``, or a number.

        >>> m.assert_at_most(peak="48 MiB", arrays=12)
        """
        __tracebackhide__ = True  # pytest shows the line that set the limits
        found = self.as_dict()
        above = [line for name, limit in checked(limits).items() if (line := _above(name, found, limit))]
        if above:
            raise AssertionError("; ".join(above))

    def __repr__(self) -> str:
        return f"Measured({', '.join(f'{name}={value}' for name, value in self.as_dict().items())})"

    def __str__(self) -> str:
        lines = [f"{_figure(name, value):>12} {_WORDS[name]}" for name, value in self.as_dict().items()]
        return "\n".join(lines)


def checked(limits: dict[str, Size]) -> dict[str, Size]:
    """The limits as they are, where each names a figure and is a size."""
    __tracebackhide__ = True
    for name, limit in limits.items():
        if name not in _WORDS:
            raise TypeError(f"there is no figure {name!r} to limit: there are {', '.join(_WORDS)}")
        validation.size(name, limit)
    return limits


def known(name: str, found: dict[str, int | None]) -> int:
    """A figure that somebody relies on."""
    __tracebackhide__ = True
    value = found[name]
    if value is None:
        raise ValueError(
            f"{name} is not known, as not all arrays came from pools, or other threads used them too: put "
            "firsttouch.use(firsttouch.pool()) around the code, or install() a pool before it"
        )
    return value


def _above(name: str, found: dict[str, int | None], limit: Size) -> str | None:
    """What to say where a figure is above its limit."""
    __tracebackhide__ = True
    allowed = validation.size(name, limit)
    value = known(name, found)
    if value <= allowed:
        return None
    return f"{_figure(name, value)} {_WORDS[name]} ({name}), where at most {_figure(name, allowed)} may be"


def _figure(name: str, value: int | None) -> str:
    if name in COUNTS:
        return "? arrays" if value is None else units.count(value, "array")
    return "?" if value is None else units.size(value)

"""Memory figures of a block of code, which do not depend on how busy the machine is."""

from __future__ import annotations

import contextvars
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from firsttouch import _firsttouch
from firsttouch._internal import tables, units, validation
from firsttouch._internal.validation import Size

__all__ = ["Measured", "measure"]

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
    """Measure the memory that arrays made in a block request; entering returns a :class:`Measured`.

    Parameters
    ----------
    threads : {"all", "own"}, optional
        Whose arrays are counted: those of all threads, or only those of this one.

    Raises
    ------
    TypeError, ValueError
        If `threads` is not one of these.

    See Also
    --------
    stats : Statistics of an allocator since it was made.

    Notes
    -----
    Counted are arrays of 16 KiB and more that NumPy or firsttouch allocates while the block runs, also where no
    allocator was chosen; smaller ones stay with NumPy, where counting would cost too much. Not counted are arrays of
    an explicit :func:`numpy_default`, of :func:`shared`, and of child processes. Blocks may nest and overlap, in
    threads and tasks: each counts what happens while it is open.

    Idle memory is returned when the outermost block begins, and does not decay while one is open, so that the figures
    depend neither on what ran before nor on how long the code took.

    Examples
    --------
    >>> x = np.arange(100_000.0)
    >>> with ft.use(ft.pool()), ft.measure() as m:
    ...     y = (x - x.mean()) / x.std()
    >>> m.peak >= 2 * x.nbytes
    True
    >>> m.assert_at_most(peak="8 MiB")

    """

    def __init__(self, *, threads: Literal["all", "own"] = "all") -> None:
        self._only_own = validation.one_of("threads", threads, ("all", "own")) == "own"
        self._open: dict[object, list[Measured]] = {}  # by thread or task, because an object may be shared

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            if name.startswith("_"):
                raise AttributeError(f"'measure' object has no attribute {name!r}", name=name, obj=self)
            m = f"m.{name}" if hasattr(Measured, name) else "m.peak and others"
            raise AttributeError(
                f"measure() has no {name!r}, as it measures a block: with firsttouch.measure() as m: ... gives {m}",
                name=name,
                obj=self,
            )

    def __enter__(self) -> Measured:
        here, everywhere = _firsttouch.get_allocator(), contextvars.Context().run(_firsttouch.get_allocator)
        cold = [allocator for allocator in (here, everywhere) if allocator is not None]
        measured = Measured(_firsttouch.ProfileRegion(self._only_own, cold))
        self._open.setdefault(_firsttouch.home(), []).append(measured)
        return measured

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        here = _firsttouch.home()
        if here not in self._open and self._open:
            here = list(self._open)[-1]  # a generator may end elsewhere
        entered = self._open.get(here)
        if not entered:
            raise RuntimeError("this measure() was not entered, or has ended already")
        measured = entered.pop()
        if not entered:
            del self._open[here]
        measured._end()


class Measured:
    """Figures of a block of code, in bytes unless noted; while the block runs, those so far.

    See Also
    --------
    firsttouch.measure : Returns it on entry.

    """

    def __init__(self, region: _firsttouch.ProfileRegion) -> None:
        self._region = region
        self._found: dict[str, int | None] | None = None

    def _end(self) -> None:
        self._found = self._region.close()

    def as_dict(self) -> dict[str, int | None]:
        """Return all figures as a dictionary.

        Returns
        -------
        dict of str to int or None

        """
        found = self._region.look() if self._found is None else self._found
        return {} if found is None else dict(found)

    def _count(self, name: str) -> int:
        return self.as_dict()[name] or 0

    @property
    def allocated(self) -> int:
        """Requested by all arrays made in the block, including what arrays grew by."""
        return self._count("allocated")

    @property
    def arrays(self) -> int:
        """Number of arrays made in the block."""
        return self._count("arrays")

    @property
    def peak(self) -> int:
        """Peak of what arrays made in the block held."""
        return self._count("peak")

    @property
    def largest(self) -> int:
        """Size of the largest array."""
        return self._count("largest")

    @property
    def kept(self) -> int:
        """Held by arrays made in the block that are still alive."""
        return self._count("kept")

    @property
    def kept_arrays(self) -> int:
        """Number of arrays made in the block that are still alive."""
        return self._count("kept_arrays")

    @property
    def first_touched(self) -> int | None:
        """Memory served that the kernel faults in where it is touched; ``None`` if not all of it came from pools."""
        return self.as_dict()["first_touched"]

    @property
    def recycled(self) -> int | None:
        """Memory served that a pool had kept idle; ``None`` if not all of it came from pools.

        Also ``None`` with ``threads="own"`` if other threads use the same pool, which counts for all of them.
        """
        return self.as_dict()["recycled"]

    @property
    def recycled_arrays(self) -> int | None:
        """Number of arrays served entirely from idle memory; ``None`` if not all came from pools."""
        return self.as_dict()["recycled_arrays"]

    def assert_at_most(self, **limits: Size) -> None:
        """Raise :exc:`AssertionError` if a figure exceeds its limit.

        Parameters
        ----------
        **limits : int or str
            Limits by the figures' names, in bytes, text such as ``"10 MiB"``, or a number of arrays.

        Raises
        ------
        AssertionError
            If a figure exceeds its limit.
        TypeError
            If there is no such figure, a limit is not a size, or no limit is given.
        ValueError
            If a figure is not known, as not all arrays came from pools.

        Examples
        --------
        >>> with ft.measure() as m:
        ...     y = np.ones(100_000)
        >>> m.assert_at_most(peak="1 MiB", arrays=1)

        """
        __tracebackhide__ = True  # pytest shows the line that set the limits
        if not limits:
            raise TypeError("assert_at_most() needs a limit, as in assert_at_most(peak='10 MiB')")
        found = self.as_dict()
        above = [line for name, limit in checked(limits).items() if (line := _above(name, found, limit))]
        if above:
            raise AssertionError("; ".join(above))

    def __repr__(self) -> str:
        return f"Measured({', '.join(f'{name}={value}' for name, value in self.as_dict().items())})"

    def _repr_html_(self) -> str:
        rows = [(_WORDS[name], _figure(name, value), "") for name, value in self.as_dict().items() if value is not None]
        return tables.html("measured", rows, self._unknown())

    def __str__(self) -> str:
        known = {name: value for name, value in self.as_dict().items() if value is not None}
        lines = [f"{_figure(name, value):>12} {_WORDS[name]}" for name, value in known.items()]
        return "\n".join([*lines, *self._unknown()])

    def _unknown(self) -> list[str]:
        """Return a sentence on the figures that are not known, if there are any."""
        names = [name for name, value in self.as_dict().items() if value is None]
        return [f"not known, as not all arrays came from a pool: {units.listed(names)}"] if names else []


def checked(limits: dict[str, Size]) -> dict[str, Size]:
    """Return the limits if each names a figure and is a size."""
    __tracebackhide__ = True
    for name, limit in limits.items():
        if name not in _WORDS:
            raise TypeError(f"there is no figure {name!r} to limit: there are {', '.join(_WORDS)}")
        validation.size(name, limit)
    return limits


def known(name: str, found: dict[str, int | None]) -> int:
    """Return a figure, which has to be known."""
    __tracebackhide__ = True
    value = found[name]
    if value is None:
        raise ValueError(
            f"{name} is not known, as not all arrays came from pools, or other threads used them too: put "
            "firsttouch.use(firsttouch.pool()) around the code, or install() a pool before it"
        )
    return value


def _above(name: str, found: dict[str, int | None], limit: Size) -> str | None:
    """Return what to say if a figure exceeds its limit."""
    __tracebackhide__ = True
    allowed = validation.size(name, limit)
    value = known(name, found)
    if value <= allowed:
        return None
    return f"{_figure(name, value)} {_WORDS[name]} ({name}), where at most {_figure(name, allowed)} may be"


def _figure(name: str, value: int) -> str:
    return units.count(value, "array") if name in COUNTS else units.size(value)

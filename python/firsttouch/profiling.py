"""Memory figures of a block of code, which do not depend on how busy the machine is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firsttouch import _firsttouch
from firsttouch._internal import units
from firsttouch._internal.arguments import Size

__all__ = ["Measured", "measure"]

#: Figures that are numbers of arrays; all others are bytes.
COUNTS = ("arrays", "kept_arrays")
_WORDS = {
    "allocated": "allocated",
    "arrays": "made",
    "peak": "held at once",
    "largest": "for one array",
    "kept": "still held at the end",
    "kept_arrays": "still held at the end",
}


class Measured:
    """Figures of a block of code, in bytes unless noted; while the block runs, those so far.

    See Also
    --------
    firsttouch.measure : Returns it on entry.

    """

    def __init__(self, region: _firsttouch.ProfileRegion) -> None:
        self._region = region
        self._found: dict[str, int] | None = None

    def as_dict(self) -> dict[str, int]:
        """Return all figures as a dictionary.

        Returns
        -------
        dict of str to int

        """
        found = self._region.look() if self._found is None else self._found
        return {} if found is None else dict(found)

    def _count(self, name: str) -> int:
        return self.as_dict()[name]

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
            If there is no such figure, or a limit is not a size.

        Examples
        --------
        >>> with ft.measure() as m:
        ...     y = np.ones(100_000)
        >>> m.assert_at_most(peak="1 MiB", arrays=1)

        """
        __tracebackhide__ = True  # pytest shows the line that set the limits
        found, above = self.as_dict(), []
        for name, limit in limits.items():
            if name not in _WORDS:
                raise TypeError(f"there is no figure {name!r} to limit: there are {', '.join(_WORDS)}")
            allowed, value = _firsttouch.size_argument(name, limit), found[name]
            if value > allowed:
                above.append(
                    f"{_figure(name, value)} {_WORDS[name]} ({name}), where at most {_figure(name, allowed)} may be"
                )
        if above:
            raise AssertionError("; ".join(above))

    def __repr__(self) -> str:
        return f"Measured({', '.join(f'{name}={value}' for name, value in self.as_dict().items())})"

    def _repr_html_(self) -> str:
        return units.table("measured", ((_WORDS[name], _figure(name, value)) for name, value in self.as_dict().items()))

    def __str__(self) -> str:
        return "\n".join(f"{_figure(name, value):>12} {_WORDS[name]}" for name, value in self.as_dict().items())


@contextmanager
def measure() -> Iterator[Measured]:
    """Measure the memory that arrays made in a block request, in any thread.

    Returns
    -------
    context manager
        Entering it returns a :class:`firsttouch.profiling.Measured`.

    See Also
    --------
    stats : Statistics of an allocator since it was made.

    Notes
    -----
    Counted are arrays from a pool's `small_limit` on (see :func:`stats`) that NumPy or firsttouch allocates while the
    block runs, whichever allocator serves them; to count smaller ones would cost too much. Not counted are arrays of an
    explicit :func:`numpy_default`, of :func:`shared`, and of child processes. Blocks may nest and overlap, in threads
    and tasks: each counts what happens while it is open.

    The figures depend neither on what ran before nor on how long the code took. What a pool recycled meanwhile is the
    difference of its :func:`stats`.

    Examples
    --------
    >>> x = np.arange(100_000.0)
    >>> with ft.use(ft.pool()), ft.measure() as m:
    ...     y = (x - x.mean()) / x.std()
    >>> m.peak >= 2 * x.nbytes
    True
    >>> m.assert_at_most(peak="8 MiB")

    """
    measured = Measured(_firsttouch.ProfileRegion())
    try:
        yield measured
    finally:
        measured._found = measured._region.close()


def _figure(name: str, value: int) -> str:
    return units.count(value, "array") if name in COUNTS else units.size(value)

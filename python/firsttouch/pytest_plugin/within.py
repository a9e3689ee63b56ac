"""A measured block of a test with limits."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

from firsttouch._internal.validation import Size
from firsttouch.profiling import Measured, checked, measure


class within(measure):
    """:class:`firsttouch.measure` with limits, which are checked at the end of the block unless it raised."""

    def __init__(self, *, threads: Literal["all", "own"] = "all", **limits: Size) -> None:
        __tracebackhide__ = True
        super().__init__(threads=threads)
        self._limits = checked(limits)
        self._last: Measured | None = None

    def __enter__(self) -> Measured:
        self._last = super().__enter__()
        return self._last

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        super().__exit__(kind, error, traceback)
        if kind is None and self._last is not None:
            self._last.assert_at_most(**self._limits)

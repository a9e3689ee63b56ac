"""A measured block of a test with limits."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

from firsttouch._internal.validation import Size
from firsttouch.profiling import checked, measure


class within(measure):
    """:class:`firsttouch.measure` with limits, which are checked at the end of the block unless it raised."""

    def __init__(self, *, threads: Literal["all", "own"] = "all", **limits: Size) -> None:
        __tracebackhide__ = True
        super().__init__(threads=threads)
        self._limits = checked(limits)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        measured = self._leave()
        if kind is None:
            measured.assert_at_most(**self._limits)

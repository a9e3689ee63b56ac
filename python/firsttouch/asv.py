"""Memory figures as benchmarks of airspeed velocity (asv): what a function asks of memory, the same on every run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, ParamSpec

from firsttouch.context import use
from firsttouch.custom import AllocatorLike
from firsttouch.profiling import COUNTS, checked, known, measure

P = ParamSpec("P")


def track(
    figure: str = "peak", *, allocator: AllocatorLike | None = None, warm_up: bool = True
) -> Callable[[Callable[P, Any]], Callable[P, int]]:
    """Makes a function an asv benchmark of one figure of :func:`firsttouch.measure`; its name begins with ``track_``.

    ``figure``: an attribute of :class:`firsttouch.Measured`, like ``"peak"`` or ``"first_touched"``. ``allocator``:
    what serves arrays meanwhile; ``None`` is the current one, and ``"pool()"`` is needed for what is recycled and first
    touched. ``warm_up``: calls the function once before, as a first call may import and fill caches.

    >>> class Filters:
    ...     @track("peak")
    ...     def track_smooth(self):
    ...         smooth(self.image)
    """
    checked({figure: 0})

    def decorate(function: Callable[P, Any]) -> Callable[P, int]:
        @functools.wraps(function)
        def measured(*args: P.args, **kwargs: P.kwargs) -> int:
            with contextlib.nullcontext() if allocator is None else use(allocator):
                if warm_up:
                    function(*args, **kwargs)
                with measure() as found:
                    function(*args, **kwargs)
            return known(figure, found.as_dict())

        vars(measured)["unit"] = "arrays" if figure in COUNTS else "bytes"
        return measured

    return decorate

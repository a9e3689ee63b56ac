"""Memory figures as benchmarks of airspeed velocity (asv), reproducible from run to run."""

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
    """Make a function an asv benchmark of one memory figure; the function's name has to begin with ``track_``.

    Parameters
    ----------
    figure : str, optional
        Attribute of :class:`firsttouch.profiling.Measured`, such as ``"peak"`` or ``"first_touched"``.
    allocator : AllocatorLike, optional
        Allocator that serves the function. The default is the current one. Figures of recycled and first-touched
        memory need a pool.
    warm_up : bool, optional
        Whether the function is called once before, as a first call may import modules and fill caches.

    Returns
    -------
    callable
        Decorator for the benchmark.

    Raises
    ------
    TypeError
        If there is no such figure.

    Examples
    --------
    >>> from firsttouch.asv import track
    >>> @track("largest")
    ... def track_sum():
    ...     (np.ones(100_000) + 1).sum()
    >>> track_sum()
    800000

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

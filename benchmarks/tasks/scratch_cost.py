"""Empty scopes, and comparable constructs of Python."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def statements() -> dict[str, Callable[[range], None]]:
    """Return loops over empty scopes, by what is measured; the empty loop comes first."""
    import firsttouch as ft

    def plain() -> None:
        pass

    decorated, pooled = ft.scratch(plain), ft.use()(plain)
    own = ft.scratch(ft.ScratchBuffer())

    def call(turns: range) -> None:
        for _ in turns:
            plain()

    def scratch_call(turns: range) -> None:
        for _ in turns:
            decorated()

    def scratch(turns: range) -> None:
        for _ in turns:
            with ft.scratch():
                pass

    def on_own(turns: range) -> None:
        for _ in turns:
            with own:
                pass

    def nested(turns: range) -> None:
        with ft.scratch():
            for _ in turns:
                with ft.scratch():
                    pass

    def marks(turns: range) -> None:
        buffer = ft.ScratchBuffer()
        for _ in turns:
            buffer.rewind(buffer.mark())

    def one_array(turns: range) -> None:
        with ft.scratch() as scope:
            for _ in turns:
                scope.empty(512)

    def numpy_array(turns: range) -> None:
        for _ in turns:
            np.empty(512)

    def use_call(turns: range) -> None:
        for _ in turns:
            pooled()

    def errstate(turns: range) -> None:
        for _ in turns:
            with np.errstate():
                pass

    return {
        "`f()`, a function that does nothing": call,
        "`f()` with `@ft.scratch`": scratch_call,
        "`with ft.scratch(): pass`": scratch,
        "`with s: pass`, `s = ft.scratch(buffer)`": on_own,
        "`with ft.scratch(): pass` inside another": nested,
        "`buffer.rewind(buffer.mark())`": marks,
        "`s.empty(512)`, created and freed": one_array,
        "`np.empty(512)`, NumPy's own": numpy_array,
        "`f()` with `@ft.use()`": use_call,
        "`with np.errstate(): pass`": errstate,
    }


_made: dict[str, Callable[[range], None]] = {}


def measure(turns: int) -> dict[str, float]:
    """Return seconds per iteration of each, the fastest of five short loops, to exclude interruptions."""
    if not _made:
        _made.update(statements())
    reply: dict[str, float] = {}
    for _ in range(5):
        for name, statement in _made.items():
            start = time.perf_counter()
            statement(range(turns))
            reply[name] = min(reply.get(name, 1.0), (time.perf_counter() - start) / turns)
    return reply

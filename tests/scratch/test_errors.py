"""Mistakes: what cannot be made or given."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch
from tests.programs import run
from tests.scratch.arrays import MIDDLE, Kept

pytestmark = pytest.mark.quick


ft: Any = firsttouch  # what types forbid is tried here


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ft.ScratchBuffer(0), ValueError, "invalid chunk size 0:"),
        (lambda: ft.ScratchBuffer(1 << 62), ValueError, "invalid chunk size 4611686018427387904:"),
        (lambda: ft.ScratchBuffer("many"), ValueError, "many"),
        (lambda: ft.ScratchBuffer(1.5), TypeError, "chunk_size.*float"),
        (lambda: ft.ScratchBuffer(upstream=ft.pool), TypeError, r"did you mean firsttouch\.pool\(\)"),
        (lambda: ft.FixedBuffer(0), ValueError, "FixedBuffer.*0"),
        (lambda: ft.FixedBuffer(1 << 60), MemoryError, "1 EiB"),
        (lambda: ft.FixedBuffer(2.5), TypeError, "FixedBuffer.*float|float"),
        (lambda: ft.FixedBuffer([1, 2]), TypeError, r"FixedBuffer\(\) takes .*not list"),
        (lambda: ft.FixedBuffer(b"bytes"), ValueError, r"read-only.*writable \(bytes\)"),
        (lambda: ft.FixedBuffer(np.broadcast_to(1.0, (9, 9))), ValueError, "read-only|contiguous"),
        (lambda: ft.FixedBuffer(np.zeros(9)[::2]), ValueError, r"not contiguous.*\(ndarray\)"),
        (lambda: ft.FixedBuffer(np.zeros(0)), ValueError, "no bytes"),
        (lambda: ft.scratch(5), TypeError, r"scratch\(\) takes a buffer.*not 5"),
        (lambda: ft.scratch("1 MiB"), TypeError, r"scratch\(\) takes a buffer.*not '1 MiB'"),
        (lambda: ft.scratch(ft.pool()), TypeError, r"scratch\(\) takes a buffer"),
        (lambda: ft.scratch(ft.ScratchBuffer), TypeError, r"scratch\(\) takes a buffer.*not <class"),
        (lambda: ft.scratch(debug=True), TypeError, "debug"),
        (lambda: ft.ScratchBuffer(chunksize=1), TypeError, "chunksize"),
        (lambda: ft.scratch()(1, 2), TypeError, "positional argument"),
        (lambda: ft.scratch(lambda: 1).__enter__(), AttributeError, "__enter__"),
        *((kind, TypeError, f"{kind.__name__}") for kind in (ft.buffers.Scope, ft.buffers.Buffer)),
    ],
)
def test_what_can_not_be_made(make: Callable[[], Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda s: s.empty(-1), ValueError, "negative"),
        (lambda s: s.zeros(2**62, np.uint8), MemoryError, "4.00 EiB"),
        (lambda s: s.empty("three"), TypeError, "int"),
    ],
)
@pytest.mark.parametrize("place", [ft.ScratchBuffer, ft.FixedBuffer])
def test_what_a_scope_can_not_give(place: Any, ask: Callable[[Any], Any], error: Any, words: str) -> None:
    buffer, kept = place(), Kept()
    with ft.scratch(buffer) as s:
        kept.make()
        for giver in (s, buffer):
            with pytest.raises(error, match=words):
                ask(giver)
        kept.make(MIDDLE, s.empty)
        assert kept.intact()
    kept.clear()
    assert buffer.used == 0


@pytest.mark.linux("RLIMIT_AS")
def test_no_memory_for_the_first_scope_of_a_thread() -> None:
    run(
        """
        from tests.memory_out.failing import exhaust

        @ft.scratch(ft.ScratchBuffer("1 MiB"))
        def total():
            return int(np.ones(3000, "u1").sum())

        np.ones(3000, "u1").sum()
        exhaust(total, 3000, 70_000)
        """
    )

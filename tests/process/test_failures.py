"""Failed requests: MemoryError, the reason in last_failure(), and the lines that made arrays."""

import gc
import weakref

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB

pytestmark = pytest.mark.quick

IMPOSSIBLE = 1 << 62


def test_why_numpy_got_no_memory() -> None:
    pool = ft.pool()
    for make in (np.empty, np.zeros):
        with ft.use(pool), pytest.raises(MemoryError, match="Unable to allocate"):
            make(IMPOSSIBLE, np.uint8)
        failure = ft.last_failure()
        assert failure is not None
        assert failure.asked == IMPOSSIBLE
        assert str(failure) == failure.reason
        assert failure.reason.startswith("cannot allocate 4 EiB: ")
        assert failure.limit in ("size", "vm.overcommit_memory=0", "vm.overcommit_memory=2", "kernel", "RLIMIT_AS")
    assert (ft.stats(pool).failures, ft.stats(pool).in_use) == (2, 0)
    with ft.use(pool):
        assert np.ones(1 << 20).all()


def test_why_an_array_was_not_resized() -> None:
    array = ft.ones(MIB, allocator=ft.limited(ft.pool(), 10 * MIB))
    with pytest.raises(MemoryError):
        array.resize(2 * MIB, refcheck=False)
    failure = ft.last_failure()
    assert failure is not None
    assert failure.reason.startswith("cannot allocate 16 MiB: limited() allows 10 MiB, of which 8 MiB are in use")
    assert array.all()


def test_a_request_that_was_served_at_the_second_attempt_is_no_failure() -> None:
    """Before a large one fails, a pool's idle blocks and a buffer's idle chunks go back to the upstream."""
    with pytest.raises(MemoryError):
        ft.zeros(IMPOSSIBLE, np.uint8, allocator=ft.malloc())
    before = ft.last_failure()
    pool = ft.pool(ft.limited(ft.pages(), "64 MiB"))
    pool.zeros(40 << 20, np.uint8)  # what is kept of it fills the budget
    assert not pool.zeros(50 << 20, np.uint8).any()
    assert ft.last_failure() == before
    buffer = ft.ScratchBuffer("1 MiB", upstream=ft.limited(ft.malloc(), "1.5 MiB"))
    with ft.scratch(buffer):
        np.ones(2000)
    assert buffer.capacity == 1 << 20
    assert buffer.ones(1 << 20, np.uint8).all()
    assert ft.last_failure() == before


@pytest.mark.parametrize("expression", ["limited(pool(), '1 GiB')", "filled(pool())"])
def test_code_that_has_run_is_not_kept(expression: str) -> None:
    code = compile("array = np.empty(1 << 20, np.uint8)", "<cell>", "exec")
    with ft.use(expression):
        exec(code, {"np": np})
    kept = weakref.ref(code)
    del code
    gc.collect()
    assert kept() is None


def test_a_line_that_is_compiled_again_is_the_same_line() -> None:
    arrays: list[np.ndarray] = []
    with ft.use(ft.limited(ft.pool(), 40 * MIB)):
        for _ in range(3):
            exec("arrays.append(np.empty(10 << 20, np.uint8))", {"arrays": arrays, "np": np})
        with pytest.raises(MemoryError):
            np.empty(20 * MIB, np.uint8)
    failure = ft.last_failure()
    assert failure is not None
    assert "30.0 MiB  <string>:1 (3 blocks)" in failure.reason

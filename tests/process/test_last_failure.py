"""Failed requests: MemoryError, and the reason in last_failure()."""

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import GIB
from tests.programs import ask

pytestmark = pytest.mark.quick

IMPOSSIBLE = 1 << 62


def test_none_before_the_first() -> None:
    assert (
        ask("""
        import json
        ft.install()
        np.ones(1 << 20)
        print(json.dumps(ft.last_failure()))
    """)
        is None
    )


@pytest.mark.parametrize("make", [np.empty, np.zeros])
@pytest.mark.parametrize("size", [IMPOSSIBLE, (1 << 63) - 1, (1 << 63) - 64, 1 << 48, 200 * 1024 * GIB])
def test_an_impossible_size(make: type, size: int) -> None:
    pool = ft.pool()
    with ft.use(pool), pytest.raises(MemoryError, match="Unable to allocate"):
        make(size, np.uint8)
    failure = ft.last_failure()
    assert failure is not None
    assert failure.asked == size
    assert str(failure) == failure.reason
    assert failure.reason.startswith(f"cannot allocate {size} bytes: ")
    assert failure.limit in ("size", "vm.overcommit_memory=0", "vm.overcommit_memory=2", "kernel", "RLIMIT_AS")
    assert ft.stats(pool).failures == 1
    assert ft.stats(pool).in_use == 0
    with ft.use(pool):
        assert np.ones(1 << 20).all()


@pytest.mark.parametrize(
    "expression", ["ft.pages()", "ft.pages(huge='thp')", "ft.aligned(1 << 21)", "ft.malloc()", "ft.calloc()"]
)
def test_from_every_source(expression: str) -> None:
    allocator = eval(expression)
    with ft.use(allocator), pytest.raises(MemoryError):
        np.zeros(IMPOSSIBLE, np.uint8)
    failure = ft.last_failure()
    assert failure is not None
    assert failure.asked == IMPOSSIBLE
    with ft.use(allocator):
        assert not np.zeros(1 << 20).any()


def test_growing_too_far_leaves_the_array_as_it_was() -> None:
    with ft.use():
        array = np.arange(1 << 18)
        with pytest.raises(MemoryError):
            array.resize(1 << 58, refcheck=False)
    assert np.array_equal(array, np.arange(1 << 18))
    failure = ft.last_failure()
    assert failure is not None
    assert failure.asked == 8 << 58


def test_the_limit_of_the_address_space_is_named() -> None:
    found = ask("""
        import json, resource
        ft.install()
        kept = np.ones(10 << 20, np.uint8)
        room = probe.status("VmSize") + (100 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        try:
            np.empty(200 << 20, np.uint8)
        except MemoryError:
            failure = ft.last_failure()
        assert kept.all()
        smaller = np.ones(60 << 20, np.uint8)
        print(json.dumps([failure.asked, failure.limit, failure.reason, room]))
    """)
    asked, limit, reason, room = found
    assert (asked, limit) == (200 << 20, "RLIMIT_AS")
    assert reason.startswith(f"cannot allocate {asked} bytes: RLIMIT_AS allows {room} bytes of address space, of which")


def test_the_limit_of_private_memory_is_named() -> None:
    asked, limit = ask("""
        import json, resource
        ft.install()
        room = probe.status("VmData") + (100 << 20)
        resource.setrlimit(resource.RLIMIT_DATA, (room, room))
        try:
            np.empty(200 << 20, np.uint8)
        except MemoryError:
            failure = ft.last_failure()
        print(json.dumps([failure.asked, failure.limit]))
    """)
    assert (asked, limit) == (200 << 20, "RLIMIT_DATA")


def test_what_is_kept_goes_before_a_request_fails() -> None:
    ask("""
        import resource
        pool = ft.pool(decay=None, max_idle="8 GiB")
        ft.install(pool)
        arrays = [np.ones(1 << 20, np.uint8) for _ in range(200)]
        arrays.clear()
        idle = ft.stats(pool).idle
        assert idle >= 200 << 20, idle
        room = probe.status("VmSize") + (50 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        whole = np.ones(220 << 20, np.uint8)
        assert whole.all() and ft.last_failure() is None and ft.stats(pool).failures == 0
        print(0)
    """)

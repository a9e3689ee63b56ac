"""mlockall: no unused memory is made resident, and idle memory is still returned."""

import os
import resource

import pytest

from tests.programs import ask, run

LOCK = """
import ctypes, resource
libc = ctypes.CDLL(None, use_errno=True)
MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4
def lock(flags):
    assert libc.mlockall(flags) == 0, ctypes.get_errno()
"""


def _may_lock() -> bool:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return os.geteuid() == 0 or soft == resource.RLIM_INFINITY


pytestmark = pytest.mark.skipif(not _may_lock(), reason="this user may not lock memory")


@pytest.mark.parametrize("flags", ["MCL_CURRENT | MCL_FUTURE", "MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT"])
def test_locking_makes_little_resident(flags: str) -> None:
    """What is reserved for later must not come into memory."""
    pooled, plain = (
        ask(
            LOCK
            + f"""
import json
array = np.ones(1 << 20)
before = probe.rss()
{install}
array = np.ones(1 << 20)
lock({flags})
array = np.ones(1 << 20)
more = [np.ones(1 << 17) for _ in range(20)]
del more
print(json.dumps(probe.rss() - before))
"""
        )
        for install in ("ft.install()", "")
    )
    assert pooled <= plain + (48 << 20)


@pytest.mark.parametrize("flags", ["MCL_CURRENT", "MCL_CURRENT | MCL_FUTURE"])
def test_zeros_are_zero_and_idle_memory_goes_home(flags: str) -> None:
    """madvise refuses on locked memory; unmapping it works."""
    left = ask(
        LOCK
        + f"""
import json
pool = ft.pool(decay=0.2)
ft.install(pool)
first = np.ones(100_000, np.uint8)
lock({flags})
before = probe.rss()
sizes = [100_000, 1 << 20, 3 << 20, 5 << 20, 33 << 20, 40 << 20]
for turn in range(3):
    for size in sizes:
        dirty = np.full(size, 0xFF, np.uint8)
        del dirty
        assert not np.zeros(size, np.uint8).any()
    arrays = [np.full(size, turn, np.uint8) for size in sizes]
    ft.trim(pool)
    assert all((array == turn).all() for array in arrays)
    arrays.clear()
assert probe.wait_until(lambda: probe.rss() - before < 16 << 20, 5), (probe.rss() - before, ft.stats(pool))
print(json.dumps(probe.rss() - before))
"""
    )
    assert left < 16 << 20


@pytest.mark.parametrize("huge", [False, "thp"])
def test_memory_that_can_not_be_discarded_is_not_taken_for_zero(huge: object) -> None:
    run(
        LOCK
        + f"""
kept = np.ones(100_000, np.uint8)
lock(MCL_CURRENT | MCL_FUTURE)
for size in (20_000, 100_000, 900_000, 1 << 20, 3 << 20, 5 << 20, 33 << 20):
    pool = ft.pool(ft.pages(huge={huge!r}), decay=None)
    with ft.use(pool):
        neighbour = np.ones(100_000, np.uint8)
        dirty = np.full(size, 0xFF, np.uint8)
        del dirty
        ft.trim(pool)
        assert not np.zeros(size, np.uint8).any(), size
"""
    )


def test_the_limit_of_locked_memory_is_named() -> None:
    """Without privilege, locked memory is bounded; the pool survives the refusal and says what it was."""
    nobody = 65534
    printed = run(
        LOCK
        + f"""
import os
ft.install()
kept = np.ones(1 << 20, np.uint8)
probe.message(MemoryError, lambda: np.empty(1 << 62, np.uint8))  # loads what NumPy needs to say so
resource.setrlimit(resource.RLIMIT_MEMLOCK, (6 << 20, 6 << 20))
if os.geteuid() == 0:
    os.setresgid({nobody}, {nobody}, {nobody})
    os.setresuid({nobody}, {nobody}, {nobody})
lock(MCL_FUTURE)
try:
    np.ones(300 << 20, np.uint8)
except MemoryError:
    print(ft.last_failure().limit, kept.all(), np.ones(1 << 20, np.uint8).all())
"""
    )
    assert printed == "RLIMIT_MEMLOCK True True\n"

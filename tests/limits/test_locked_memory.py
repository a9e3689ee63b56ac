"""mlockall: no unused memory is made resident, and idle memory is still returned."""

import os
import resource

import pytest

from tests.programs import ask

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

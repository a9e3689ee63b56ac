"""Fork: see the page."""

import pytest

from tests.programs import run

pytestmark = pytest.mark.quick

CHILD = """
import os
def in_child(body):
    child = os.fork()
    if not child:
        try:
            os._exit(7 if body() else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_what_a_child_process_writes_stays_its_own_unless_the_array_is_shared() -> None:
    run(
        CHILD
        + """
own, shared = ft.zeros(1 << 20, np.uint8, allocator=ft.pool()), ft.shared(1 << 20, np.uint8)
def writes():
    own[:] = 1
    shared[:] = 1
    return own.all() and shared.all()
in_child(writes)
assert not own.any() and shared.all()
"""
    )


def test_idle_memory_returns_to_the_system_in_both_processes_after_a_fork() -> None:
    """The background purger ends before a fork and comes back, in the child with its next use of memory."""
    printed = run("""
        import os
        pool = ft.pool(decay=0.3)
        ft.install(pool)
        def decays():
            array = np.ones(30 << 20, np.uint8)
            del array
            assert ft.stats(pool).idle >= 30 << 20
            assert probe.wait_until(lambda: ft.stats(pool).idle == 0), ft.stats(pool)
        decays()
        kept = np.ones(30 << 20, np.uint8)
        child = os.fork()
        if not child:
            decays()
            os._exit(7)
        del kept
        assert probe.wait_until(lambda: ft.stats(pool).idle == 0), ft.stats(pool)
        decays()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert printed == "7\n"

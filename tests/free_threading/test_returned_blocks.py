"""Blocks that come back from any thread, most to an allocator written in Python."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import firsttouch as ft
from firsttouch import _firsttouch
from tests.preloading import shim
from tests.programs import run
from tests.trust.expressions import Own

pytestmark = pytest.mark.quick


class Feeding(Own):
    """Each of the first blocks that come back makes another one."""

    deepest = depth = 0
    left = 300

    def deallocate(self, address: int, nbytes: int) -> None:
        super().deallocate(address, nbytes)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self.left > 0:
            self.left -= 1
            ft.empty(4000, allocator=self)
        self.depth -= 1


def test_deliveries_are_not_nested() -> None:
    own = Feeding()
    ft.empty(4000, allocator=own)
    for _ in range(4):
        _firsttouch.deliver()
    assert own.deepest == 1
    assert own.left == 0
    assert own.kept == {}


def test_every_thread_delivers() -> None:
    own = Own()
    together = threading.Barrier(4)

    def work() -> None:
        together.wait()
        for _ in range(200):
            ft.empty(4000, allocator=own)

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(lambda _: work(), range(4)))
    _firsttouch.deliver()
    assert own.kept == {}


#: Once one says so, the next large block takes its time, as the queue of those that came back grows under its lock; and
#: a larger one that goes back to the system, until one says so again.
SLOW = """
#include <sys/syscall.h>
#include <unistd.h>
void *__libc_malloc(size_t size);
volatile int waits;
void *malloc(size_t size) {
    if (size > 100000 && waits) usleep(300000 + (waits = 0));
    return __libc_malloc(size);
}
int munmap(void *at, size_t size) {
    if (size > 250 << 20 && waits)
        for (int tries = waits = 0; tries < 1000 && !waits; tries++) usleep(1000);
    return syscall(SYS_munmap, at, size);
}
"""


@pytest.mark.linux("fork")
def test_a_child_delivers_though_it_was_forked_while_a_block_came_back(tmp_path: Path) -> None:
    program = """
        import ctypes, os, signal, threading
        from tests.trust.expressions import Own

        def fork():
            assert probe.wait_until(lambda: not waits.value)
            if not (child := os.fork()):
                ft._firsttouch.deliver()
                os._exit(0)
            if not probe.wait_until(lambda: os.waitpid(child, os.WNOHANG) == (child, 0), 30):
                os.kill(child, signal.SIGKILL)
                print("hangs")

        pool = ft.pool(Own())
        [ft.empty(20_000, "u1", allocator=pool) for _ in range(5_000)].clear()
        waits = ctypes.c_int.in_dll(ctypes.CDLL(None), "waits")
        waits.value = 1
        forks = threading.Thread(target=fork)
        forks.start()
        ft.trim(pool)
        forks.join()
    """
    slow = {"LD_PRELOAD": str(shim(SLOW, tmp_path / "slow.so"))}
    assert run(program, "-W", "ignore::DeprecationWarning", env=slow) == ""


@pytest.mark.linux("munmap")
def test_a_pool_stays_until_the_free_of_its_last_block_is_done(tmp_path: Path) -> None:
    program = """
        import ctypes, resource, threading

        def use():
            with ft.scratch(buffers[0]):
                array = np.empty(300 << 20, "u1")
            waits.value = 1
            is_made.set()

        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # so that a free returns what is idle
        waits = ctypes.c_int.in_dll(ctypes.CDLL(None), "waits")
        is_made, buffers = threading.Event(), [ft.ScratchBuffer(upstream=ft.pool())]
        with ft.scratch(buffers[0]):
            pass  # what it makes goes at once where it was made
        threading.Thread(target=use).start()
        is_made.wait()
        assert probe.wait_until(lambda: not waits.value)
        buffers.clear()
        waits.value = 1
    """
    assert run(program, env={"LD_PRELOAD": str(shim(SLOW, tmp_path / "slow.so"))}) == ""

"""What is no array comes from the installed allocator, too, through CPython's allocator of the raw domain."""

import sys
import sysconfig

import pytest

from tests.programs import ask, run
from tests.trust import campaign

pytestmark = pytest.mark.quick

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

#: The raw domain as C code reaches it: without the GIL, and with blocks of its own.
PROLOGUE = """
import ctypes, gc, json, sys, threading
import numpy as np
import firsttouch as ft
from tests import probe

libc = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
c = ctypes.CDLL("python", handle=ctypes.pythonapi._handle)  # lets the GIL go for each call
for name, result, arguments in (
    ("PyMem_RawMalloc", ctypes.c_void_p, [ctypes.c_size_t]),
    ("PyMem_RawCalloc", ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_size_t]),
    ("PyMem_RawRealloc", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]),
    ("PyMem_RawFree", None, [ctypes.c_void_p]),
):
    function = getattr(c, name)
    function.restype, function.argtypes = result, arguments

Domain = ctypes.c_void_p * 5  # ctx, malloc, calloc, realloc, free

def current():
    found = Domain()
    ctypes.pythonapi.PyMem_GetAllocator(0, ctypes.byref(found))
    return found

def put(domain):
    ctypes.pythonapi.PyMem_SetAllocator(0, ctypes.byref(domain))

def served(call):
    before = ft.stats().allocations
    kept = call()
    return ft.stats().allocations - before

def pieces(size):
    return bytes(range(256)) * (size // 256 + 1)
"""

OBJECTS = (
    *("bytes(100_000)", "bytearray(100_000)", "[None] * 20_000", "dict.fromkeys(range(20_000))"),
    "__import__('array').array('d', [0]) * 20_000",
)


def test_large_blocks_are_served() -> None:
    objects = () if FREE_THREADED else OBJECTS  # which come from mimalloc then
    run(
        f"""
        for maker in ("np.empty(20_000)", *{objects}):
            make = eval("lambda: " + maker)
            assert served(make) == 0, maker
            ft.install()
            assert served(make) >= 1, maker
            kept = make()
            ft.uninstall()
            assert served(make) == 0, maker
            del kept
            assert ft.stats().blocks == 0, maker
        """,
        prologue=PROLOGUE,
    )


def test_they_are_left_alone_where_only_arrays_are_wanted() -> None:
    run(
        """
        ft.install(arrays_only=True)
        assert served(lambda: bytes(1 << 20)) == 0 and served(lambda: np.empty(1 << 20)) == 1
        assert ft.process.arrays_only() == "install(arrays_only=True) asked for it"
        ft.install("guarded()")
        assert "requests of every size" in ft.process.arrays_only()
        assert served(lambda: bytearray(1 << 20)) == 0
        ft.install()
        assert ft.process.arrays_only() is None
        assert served(lambda: c.PyMem_RawFree(c.PyMem_RawMalloc(1 << 20))) == 1
        ft.uninstall()
        assert ft.process.arrays_only() is None
        """,
        prologue=PROLOGUE,
    )


def test_blocks_cross_the_border_with_their_content() -> None:
    """From and to each size, for blocks of ours, of CPython's, and such as were made before."""
    run(
        """
        sizes = [1, 100, 16_383, 16_384, 20_000, 131_071, 131_072, 3_000_000]
        states = {
            "ours": (ft.install, ft.install),
            "made before": (ft.uninstall, ft.install),
            "resized after": (ft.install, ft.uninstall),
        }
        for state, (make_as, resize_as) in states.items():
            for old in sizes:
                for new in sizes:
                    make_as()
                    block = c.PyMem_RawMalloc(old)
                    was_ours = ft.stats().blocks > 0
                    ctypes.memmove(block, pieces(old), old)
                    resize_as()
                    block = c.PyMem_RawRealloc(block, new)
                    assert ctypes.string_at(block, min(old, new)) == pieces(old)[: min(old, new)], (state, old, new)
                    ctypes.memset(block, 7, new)
                    # Large blocks of CPython's stay with it; glibc tells their rounded size.
                    moved = old < (1 << 17 if sys.platform == "win32" else 131_000)
                    ours = was_ours or (resize_as is ft.install and moved and sys.version_info < (3, 15))
                    assert ft.stats().blocks == (ours and new >= 16_384), (state, old, new)
                    c.PyMem_RawFree(block)
                    assert ft.stats().blocks == 0, (state, old, new)
        ft.install()
        zeros = c.PyMem_RawCalloc(100_000, 8)
        assert not any(ctypes.string_at(zeros, 800_000))
        assert not c.PyMem_RawCalloc(1 << 40, 1 << 22) and not c.PyMem_RawMalloc(1 << 62)
        c.PyMem_RawFree(zeros)
        c.PyMem_RawFree(None)
        """,
        prologue=PROLOGUE,
    )


#: What stands before CPython's own functions when an allocator is installed, and how it ends.
FIRST = {
    "tracemalloc": ("import tracemalloc; tracemalloc.start()", "tracemalloc.stop()"),
    "a context": ("other[0] = 1 << 30; put(other)", "put(own)"),
    "a function": ("other[4] = ctypes.cast(libc.free, ctypes.c_void_p).value; put(other)", "put(own)"),
}


@pytest.mark.parametrize("first", FIRST)
def test_who_came_first_may_go(first: str) -> None:
    """It puts CPython's functions back, which could not free blocks of ours: there are none."""
    begin, end = FIRST[first]
    reason, after = ask(
        f"""
        own = current()
        other = Domain.from_buffer_copy(own)
        {begin}
        ft.install()
        kept = [bytes(1 << 20), np.ones(1 << 20), bytearray(1 << 20)]
        reason = ft.process.arrays_only()
        assert ft.stats().blocks == 1
        {end}
        kept.clear()
        ft.install()
        block = c.PyMem_RawMalloc(1 << 20)
        assert ft.stats().blocks == 1
        print(json.dumps([reason, ft.process.arrays_only()]))
        """,
        prologue=PROLOGUE,
    )
    assert "wraps CPython's raw allocator already" in reason
    assert after is None


@pytest.mark.parametrize("mode", ["debug", "mimalloc_debug"] if FREE_THREADED else ["debug", "malloc_debug"])
def test_pythons_debug_hooks_keep_their_blocks(mode: str) -> None:
    program = """
        ft.install()
        assert "PYTHONMALLOC=debug" in ft.process.arrays_only()
        assert served(lambda: bytes(1 << 20)) == 0 and served(lambda: np.empty(1 << 20)) == 1
    """
    run(program, prologue=PROLOGUE, env={"PYTHONMALLOC": mode})


@pytest.mark.linux("fork")
@pytest.mark.parametrize("seed", [5, 9, 13, 17])
def test_random_programs(seed: int) -> None:
    """Others come and go before the domain; threads, forked children and other interpreters use it."""
    assert campaign.run(seed, 150).failure is None


@pytest.mark.linux("fork")
def test_threads_use_it_while_it_is_put_there() -> None:
    """They are in the middle of CPython's functions when these are replaced, and have blocks of either."""
    run(
        """
        from random import Random
        from tests.trust.steps.raw import buffer
        from tests.trust.world import World
        stop, ended = threading.Event(), []
        def work(number):
            world, random = World(1 << 20), Random(number)
            while not stop.is_set():
                world.run(buffer, random)
            ended.append(number)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        [thread.start() for thread in threads]
        for turn in range(300):
            ft.install() if turn % 2 else ft.uninstall()
            bytes(100_000)
        stop.set()
        [thread.join() for thread in threads]
        assert len(ended) == 4 and ft.stats().blocks == 0
        """,
        prologue=PROLOGUE,
    )


@pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to let go")
def test_a_request_does_not_let_the_gil_go() -> None:
    """CPython may hold a lock of its own, for which others wait with the GIL."""
    run(
        """
        ft.install("pool(pages(populate=True))")
        sys.setswitchinterval(1000)
        gate, ran = threading.Lock(), []
        gate.acquire()
        thread = threading.Thread(target=lambda: gate.acquire() and ran.append(1))
        thread.start()
        gate.release()
        sum(range(1 << 21))  # it comes to wait for the GIL
        grown = bytearray(32 << 20)
        grown.extend(bytes(64 << 20))
        assert not ran
        thread.join()
        """,
        prologue=PROLOGUE,
    )


def test_a_budget_refuses_without_the_gil() -> None:
    """The line is found where Python code runs, and nothing is waited for where it does not."""
    reason = ask(
        """
        ft.install("limited(pool(), '64 MiB')")
        kept = np.ones(5 << 20)
        refused = []
        def work():
            for _ in range(50):
                refused.append(c.PyMem_RawMalloc(30 << 20))
                c.PyMem_RawFree(c.PyMem_RawMalloc(2 << 20))
        threads = [threading.Thread(target=work) for _ in range(3)]
        [thread.start() for thread in threads]
        for _ in range(200):
            [str(number) for number in range(100)]
        [thread.join() for thread in threads]
        assert refused == [None] * 150
        print(json.dumps(str(ft.last_failure())))
        """,
        prologue=PROLOGUE,
    )
    assert "40.0 MiB  <string>:" in reason


@pytest.mark.skipif(FREE_THREADED, reason="CPython has an allocator of its own for objects")
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="garbage is collected between bytecodes alone")
def test_to_find_the_line_runs_no_code_of_the_program() -> None:
    meanwhile, later = ask(
        """
        ft.install("limited(pool(), '1 GiB')")
        ran = []

        class Late:
            def __init__(self):
                self.me = self

            def __del__(self):
                ran.append(len(grown))

        grown = [None] * 30_000
        more = (None,) * 30_000

        def grow():
            gc.collect()
            gc.disable()
            Late(), []
            gc.set_threshold(1)
            gc.enable()
            grown.extend(more)  # to 480 kB, in a frame that is not an object yet
            gc.disable()
            return len(ran)

        found = grow()
        gc.collect()
        print(json.dumps([found, ran]))
        """,
        prologue=PROLOGUE,
    )
    assert (meanwhile, later) == (0, [60_000])


@pytest.mark.skipif(FREE_THREADED, reason="CPython has an allocator of its own for objects")
def test_at_the_end_of_a_budget_errors_can_be_told_and_bytes_are_refused() -> None:
    run(
        """
        import traceback
        ft.install("limited(pool(), '64 MiB')")
        kept = [np.ones((64 << 20) - 20_000, np.uint8)]
        import email.message, json, decimal
        for turn in range(3):
            try:
                while True:
                    kept.append(bytes(100_000))
            except MemoryError:
                assert "MemoryError" in traceback.format_exc()  # which compiles the line, if it is kept
                assert sum(map(len, kept[1:])) < 16 << 20
            del kept[1:]
            compile("x = f(1)", "name", "exec")
        """,
        prologue=PROLOGUE,
    )


@pytest.mark.skipif(FREE_THREADED, reason="CPython has an allocator of its own for objects")
def test_who_goes_on_at_the_end_of_a_budget_stays_near_it() -> None:
    kept, grown = ask(
        """
        ft.install("limited(pool(), '64 MiB')")
        kept, large, grown = [], bytearray(1 << 20), bytearray(1)
        for turn in range(8):
            try:
                while True:
                    kept.append(bytes(100_000))
            except MemoryError:
                del large, kept[-70:]  # what small requests had beyond the budget, too
            large = bytearray(1 << 20)
        try:
            grown = bytearray(100_000)
        except MemoryError:
            del kept[-8:]  # of the last bytes that were served
        try:
            grown = bytearray(100_000)
            while len(grown) < 64 << 20:
                grown += b"x" * 8_000
        except MemoryError:
            pass
        print(json.dumps([sum(map(len, kept)), len(grown)]))
        """,
        prologue=PROLOGUE,
    )
    assert kept < (64 + 8) << 20
    assert grown < 8 << 20


@pytest.mark.parametrize("give_back", ["PyMem_RawFree(p)", "PyMem_RawRealloc(p, 100)"])
def test_what_is_served_beyond_a_budget_comes_back(give_back: str) -> None:
    run(
        f"""
        ft.install("limited(pool(), '64 MiB')")
        kept = np.ones((64 << 20) - 20_000, np.uint8)
        for turn in range(500):
            p = c.PyMem_RawMalloc(100_000)
            assert p, turn
            c.{give_back}
        """,
        prologue=PROLOGUE,
    )


@pytest.mark.linux("fork")
def test_the_child_of_a_thread_ends_with_it() -> None:
    """It has no other thread, as the one that gives memory back does not count."""
    run(
        """
        import os, signal, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        ft.install()
        kept = [bytes(1 << 20) for _ in range(8)]
        del kept[::2]
        ends = []
        def work():
            child = os.fork()
            if not child:
                kept.append(bytes(3 << 20))
                return
            ends.append(probe.wait_until(lambda: os.waitpid(child, os.WNOHANG)[0] == child, 20))
            if not ends[0]:
                os.kill(child, signal.SIGKILL)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert ends == [True]
        """,
        prologue=PROLOGUE,
    )


def test_numpys_own_memory_is_still_numpys() -> None:
    """Since NumPy 2.5 it comes from the raw domain."""
    run(
        """
        ft.install()
        def make():
            array = np.ones(20_000)
            array.resize(80_000, refcheck=False)
            small = np.ones(100)
            small.resize(10_000, refcheck=False)
            return array, small, np.zeros(1 << 20), ft.numpy_default().empty(1 << 20)
        with ft.use(ft.numpy_default()):
            assert served(make) == 0
            assert {ft.get_allocator(array) for array in make()} == {ft.numpy_default()}
        assert served(make) >= 2  # before NumPy 2.5, what was small stays where it was
        """,
        prologue=PROLOGUE,
    )

"""os.fork with open scopes: both processes continue at once, each with its own memory."""

import pytest

from tests.programs import run

#: The tests' own threads make Python warn, with and without us.
QUIET = ("-W", "ignore::DeprecationWarning")


@pytest.mark.quick
@pytest.mark.parametrize("buffer", ["ft.ScratchBuffer()", "ft.FixedBuffer('8 MiB')", "ft.default_buffer()"])
def test_inside_a_scope(buffer: str) -> None:
    """The scope is the parent's; the child's arrays come from elsewhere until it opens one itself."""
    printed = run(
        f"""
        import os
        from tests.scratch.arrays import Kept, MIDDLE, LARGE, churn
        buffer, kept = {buffer}, Kept()
        with ft.scratch(buffer) as s:
            for size in (MIDDLE, LARGE, 2000):
                kept.make(size); kept.make(size, s.empty)
            for turn in range(5):
                child = os.fork()
                if not child:
                    used = buffer.used
                    assert kept.intact()
                    mine = Kept()
                    mine.make(); mine.make(LARGE)
                    assert buffer.used == used
                    text = probe.message(RuntimeError, lambda: s.empty(5))
                    assert "process" in text, text
                    for array, seed in kept.arrays:
                        array[:] = 0
                    with ft.scratch(ft.ScratchBuffer()) as own:
                        mine.make(MIDDLE, own.empty)
                        churn(1)
                    with ft.scratch():
                        mine.make()
                        churn(1)
                    assert mine.intact()
                    kept.clear(); mine.clear()
                    del array
                    assert buffer.used == 0
                    os._exit(7)
                kept.make()
                churn(1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
                assert kept.intact()
        assert kept.intact()
        print(s.is_open)
    """,
        *QUIET,
    )
    assert printed == "False\n"


@pytest.mark.quick
def test_the_child_leaves_the_scopes_that_it_was_in() -> None:
    printed = run("""
        import os, sys
        from tests.scratch.arrays import Kept, MIDDLE, churn
        kept, buffer = Kept(), ft.ScratchBuffer()
        @ft.scratch(buffer)
        def step(x):
            y = x + 1
            kept.make()
            child = os.fork()
            if child:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            return child, y * 2
        with ft.scratch(buffer):
            kept.make()
            child, found = step(np.ones(MIDDLE // 8))
            assert (found == 4).all()
            churn(1)
        churn(1)
        assert kept.intact()
        kept.clear()
        del found
        assert buffer.used == 0
        assert ft.get_allocator() == ft.numpy_default()
        sys.exit(0 if child else 7)
    """)
    assert printed == ""


def test_while_other_threads_open_scopes() -> None:
    printed = run(
        """
        import os, threading
        from tests.scratch.arrays import Kept, MIDDLE, churn
        stop, kept = threading.Event(), Kept()
        def work():
            mine = Kept()
            while not stop.is_set():
                with ft.scratch() as s:
                    mine.make(3000); mine.make(MIDDLE, s.empty)
                    churn(1)
                assert mine.intact()
                if len(mine) > 20:
                    mine.clear()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        buffer = ft.ScratchBuffer("64 KiB")
        for turn in range(40):
            with ft.scratch(buffer):
                kept.make(5000)
                child = os.fork()
                if not child:
                    with ft.scratch() as s, ft.scratch(ft.ScratchBuffer()):
                        churn(1)
                        right = kept.intact()
                    kept.clear()
                    os._exit(7 if right and not buffer.used else 8)
                churn(1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        stop.set()
        for thread in threads:
            thread.join()
        assert kept.intact()
        kept.clear()
        print(buffer.used)
    """,
        *QUIET,
    )
    assert printed == "0\n"


def test_a_buffer_that_another_thread_uses_is_free_in_the_child() -> None:
    printed = run(
        """
        import os, threading
        from tests.scratch.arrays import Kept, MIDDLE, churn
        buffer, kept, entered, done = ft.ScratchBuffer(), Kept(), threading.Event(), threading.Event()
        def work():
            with ft.scratch(buffer):
                kept.make()
                entered.set()
                done.wait(60)
        thread = threading.Thread(target=work)
        thread.start()
        entered.wait(60)
        child = os.fork()
        if not child:
            with ft.scratch(buffer), ft.scratch(buffer):
                churn(1)
            def use():
                with ft.scratch(buffer):
                    churn(1)
                kept.clear()
            other = threading.Thread(target=use)  # nothing is left of the turn of the thread above
            assert kept.intact()
            other.start()
            other.join()
            os._exit(7 if buffer.used == 0 else 8)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), kept.intact())
        done.set()
        thread.join()
    """,
        *QUIET,
    )
    assert printed == "7 True\n"


def test_a_thread_of_the_child_with_the_number_of_one_that_is_gone() -> None:
    printed = run(
        """
        import os, threading
        from tests.scratch.arrays import churn
        buffer, entered, done = ft.ScratchBuffer(), threading.Event(), threading.Event()
        def use(event):
            with ft.scratch(buffer):
                churn(1)
                entered.set()
                event.wait(60)
        first = threading.Thread(target=use, args=(done,))
        first.start()
        entered.wait(60)
        child = os.fork()
        if not child:
            other = threading.Thread(target=use, args=(entered,))
            other.start()
            other.join()
            with ft.scratch(buffer):
                churn(1)
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.set()
        first.join()
    """,
        *QUIET,
    )
    assert printed == "7\n"


def test_own_scratch_memory_and_a_child() -> None:
    printed = run("""
        import os
        from tests.scratch.test_own import Bump
        from tests.scratch.arrays import Kept
        own, kept = Bump(), Kept()
        with ft.scratch(own):
            kept.make()
            child = os.fork()
            if not child:
                right = kept.intact() and (np.ones(50_000) == 1).all()
                kept.clear()
                with ft.scratch(Bump()):
                    np.ones(50_000)
                os._exit(7 if right else 8)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        print(kept.intact())
    """)
    assert printed == "True\n"

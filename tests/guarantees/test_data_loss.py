"""Data loss: see the page."""

import numpy as np
import pytest

import firsttouch as ft
from tests.programs import ask

pytestmark = pytest.mark.quick


def test_a_resize_that_fails_leaves_the_array_as_it_was() -> None:
    with ft.use():
        array = np.arange(1 << 18)
        with pytest.raises(MemoryError):
            array.resize(1 << 58, refcheck=False)
    assert np.array_equal(array, np.arange(1 << 18))
    failure = ft.last_failure()
    assert failure is not None
    assert failure.asked == 8 << 58


def test_a_shared_array_lives_until_the_last_process_that_holds_it_drops_it() -> None:
    held, gone = ask("""
        import json, os, pickle
        from tests.shared.work import memory_files
        a = ft.shared(100_000)
        a[:] = 5
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.read(reader, 1)
            os._exit(7 if (a == 5).all() else 8)
        del a
        alone = memory_files()
        os.write(writer, b"x")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        b = pickle.loads(pickle.dumps(ft.shared(1000)))
        del b
        assert probe.wait_until(lambda: memory_files() == 0)
        print(json.dumps([alone, memory_files()]))
    """)
    assert (held, gone) == (0, 0)

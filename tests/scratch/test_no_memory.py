"""Scopes where Python has no memory for their objects: they are opened as a whole, or not at all."""

import pytest

from tests.programs import run

pytest.importorskip("_testcapi")


@pytest.mark.parametrize("warm", ["", "with ft.scratch(ft.ScratchBuffer('64 KiB')): pass"])
def test_a_scope_that_cannot_be_entered_is_closed(warm: str) -> None:
    printed = run(
        f"""
        import _testcapi
        {warm}
        entered = refused = 0
        for n in range(40):
            buffer = ft.ScratchBuffer("64 KiB")
            manager = ft.scratch(buffer)
            _testcapi.set_nomemory(n, n + 1)
            try:
                manager.__enter__()
            except MemoryError:
                refused += 1
            else:
                entered += 1
                _testcapi.remove_mem_hooks()
                manager.__exit__(None, None, None)
            finally:
                _testcapi.remove_mem_hooks()
            buffer.reset()  # an error, if a scope is open
        print(entered > 0, refused > 0)
    """
    )
    assert printed == "True True\n"

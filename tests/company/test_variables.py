"""Environment variables of mimalloc and jemalloc, which the copies in this package obey, too."""

import pytest

from tests.programs import run, start


@pytest.mark.parametrize(
    "variable",
    [
        "MIMALLOC_RESERVE_OS_MEMORY=64MiB",
        "MIMALLOC_RESERVE_HUGE_OS_PAGES=1",
        "MIMALLOC_DISALLOW_ARENA_ALLOC=1",
        "MIMALLOC_ALLOW_THP=0",
        "_RJEM_MALLOC_CONF=retain:false,dirty_decay_ms:0,percpu_arena:percpu,zero:true",
    ],
)
def test_options_of_the_libraries_break_nothing(variable: str) -> None:
    name, _, value = variable.partition("=")
    program = """
        for allocator in (ft.mimalloc(), ft.jemalloc()):
            makers = (allocator.empty, allocator.zeros)
            arrays = [make(size, np.uint8) for size in (8, 1000, 10**5, 10**7) for make in makers]
            assert all(ft.get_allocator(array) == allocator for array in arrays)
            del arrays
            ft.trim(allocator)
    """
    assert run(program, env={name: value}) == ""


@pytest.mark.parametrize("variable", ["MIMALLOC_SHOW_STATS", "MIMALLOC_VERBOSE"])
def test_the_program_ends_where_mimalloc_tells_of_itself(variable: str) -> None:
    """Python's own mimalloc may: it obeys them, too."""
    assert start("ft.mimalloc().empty(10**6)", env={variable: "1"}).returncode == 0

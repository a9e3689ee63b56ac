"""memray and tracemalloc see the same as without firsttouch."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.programs import ask, execute, run

TRACED = """
import json, tracemalloc
import numpy as np
import firsttouch as ft
def traced():
    mine = [tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(mine).traces)
"""


@pytest.mark.quick
def test_tracemalloc_counts_arrays_as_ever() -> None:
    """NumPy itself tells it of every array, whoever serves it."""
    program = """
        def course():
            tracemalloc.start()
            found = [traced()]
            arrays = [np.empty(size, np.uint8) for size in (100, 50_000, 5 << 20)]
            found.append(traced())
            arrays[1].resize(150_000, refcheck=False)
            found.append(traced())
            zeros = np.zeros(3 << 20, np.uint8)
            found.append(traced())
            del arrays, zeros
            found.append(traced())
            tracemalloc.stop()
            return found
        courses = [course()]
        for allocator in (ft.pool(), ft.calloc()):
            with ft.use(allocator):
                courses.append(course())
        ft.install()
        courses.append(course())
        print(json.dumps(courses))
        """
    first, grown = 100 + 50_000 + (5 << 20), 100 + 150_000 + (5 << 20)
    assert ask(program, prologue=TRACED) == [[0, first, grown, grown + (3 << 20), 0]] * 4


def test_tracemalloc_counts_what_buffers_give() -> None:
    program = """
        tracemalloc.start()
        buffer = ft.ScratchBuffer()
        with ft.scratch(buffer) as s:
            views = buffer.empty(10_000, "u1"), s.empty(5_000, "u1")
        assert traced() == 15_000, traced()
        del views
        assert traced() == 0, traced()
        """
    run(program, prologue=TRACED)


@pytest.mark.skipif(importlib.util.find_spec("memray") is None, reason="memray is not installed")
@pytest.mark.parametrize("flags", [["--native", "--trace-python-allocators"], ["--follow-fork"]])
def test_memray_sees_our_mappings(flags: list[str], tmp_path: Path) -> None:
    script, seen = tmp_path / "program.py", tmp_path / "seen.bin"
    script.write_text(
        "import numpy as np\nimport firsttouch as ft\nft.install()\n"
        "big = np.ones(64 << 20, np.uint8)\nimport os\nif not os.fork(): np.ones(3 << 20); os._exit(0)\nos.wait()\n"
    )
    ran = execute(sys.executable, "-W", "ignore", "-m", "memray", "run", *flags, "-o", seen, script)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    peak = run(
        f"""
        from memray import AllocatorType, FileReader
        with FileReader({str(seen)!r}) as reader:
            records = list(reader.get_allocation_records())
        print(max(record.size for record in records if record.allocator == AllocatorType.MMAP))
        """,
        "-W",
        "ignore",
        prologue="",
    )
    assert int(peak) >= 64 << 20

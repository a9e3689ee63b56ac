"""Programs with one planted cause each: `firsttouch why` names it first, and its parts add up to what is resident."""

import ctypes.util
import json
import os
import re
import signal
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firsttouch.tools import resident
from tests.cli.conftest import FIRSTTOUCH
from tests.programs import execute, running

MIB = 1 << 20

#: What programs begin with that call the C library.
C = """\
import ctypes
C = ctypes.CDLL(None)
C.malloc.restype = C.pthread_self.restype = ctypes.c_void_p
C.malloc.argtypes = [ctypes.c_size_t]
C.free.argtypes = [ctypes.c_void_p]
"""


@dataclass(frozen=True)
class Cause:
    """A program, and the group and the part that are expected to be the largest."""

    program: str
    group: str
    what: str = ""
    at: str = "peak"
    needs: str = ""
    preload: str = ""
    slow: bool = False


CAUSES = {
    "a cache of arrays": Cause(
        """
        import numpy as np
        cache = {}
        def load(i):
            cache[i] = np.ones(10**6)  # here
        for i in range(20): load(i)
        """,
        resident.ARRAYS,
        "here",
    ),
    "arrays of 20 kB, of which lines are sampled": Cause(
        """
        import numpy as np
        cache = []
        for n in range(8000):
            cache.append(np.ones(2500))  # here
            if n % 8 == 0: cache.append(bytes(40_000))
        """,
        resident.ARRAYS,
        "here",
    ),
    "arrays that were gone at the end": Cause(
        """
        import numpy as np, time
        a = np.ones(2 * 10**7)  # here
        time.sleep(.3)
        del a
        time.sleep(1.5)
        """,
        resident.ARRAYS,
        "here",
    ),
    "arrays that were gone just before the end": Cause(
        """
        import numpy as np, time
        a = np.ones(2 * 10**7)  # here
        time.sleep(1.5)
        del a
        """,
        resident.ARRAYS,
        "here",
    ),
    "huge pages that are hardly used": Cause(
        """
        import numpy as np, firsttouch as ft
        huge = ft.pages(huge="thp")
        kept = [huge.empty(2 << 20, np.uint8) for _ in range(80)]  # here
        for each in kept: each[0] = 1
        """,
        resident.ARRAYS,
        "here",
        slow=True,
    ),
    "idle memory of the pool": Cause(
        """
        import numpy as np, time
        a = [np.ones(10**6) for _ in range(20)]
        time.sleep(.3)
        del a
        """,
        resident.IDLE,
        resident.IDLE,
        at="end",
    ),
    "a leak of small blocks in C": Cause(
        C + "for _ in range(150_000): ctypes.memset(C.malloc(1000), 1, 1000)\n",
        resident.MALLOC,
        resident.IN_USE,
    ),
    "a leak of large blocks in C": Cause(
        C + "for _ in range(150): ctypes.memset(C.malloc(1 << 20), 1, 1 << 20)\n",
        resident.MALLOC,
        resident.LARGE,
    ),
    "fragments": Cause(
        C
        + textwrap.dedent("""
        blocks = [C.malloc(1500) for _ in range(100_000)]
        for block in blocks: ctypes.memset(block, 1, 1500)
        for at, block in enumerate(blocks):
            if at % 10: C.free(block)
        """),
        resident.MALLOC,
        resident.GAPS,
    ),
    "a list of bytes beside NumPy": Cause(
        """
        import numpy
        kept = [bytes([n]) * (1 << 20) for n in range(150)]  # here
        """,
        resident.BUFFERS,
        "here",
    ),
    "numbers": Cause("kept = [float(n) for n in range(3_000_000)]\n", resident.OBJECTS, resident.LIVE),
    "numbers, most of them gone": Cause(
        "kept = list(map(float, range(4_000_000)))\nkept = kept[::20]\n",
        resident.OBJECTS,
        resident.GAPS_OF_OBJECTS,
        at="end",
        slow=True,
    ),
    "a mapped file": Cause(
        """
        import numpy as np
        np.zeros(2 * 10**7).tofile("data.bin")
        mapped = np.memmap("data.bin")
        mapped.sum()
        """,
        resident.FILES,
        r"/data\.bin$",
        at="end",
    ),
    "shared memory": Cause(
        """
        import atexit
        from multiprocessing import shared_memory
        shared = shared_memory.SharedMemory(create=True, size=150 << 20)
        shared.buf[:] = bytes(150 << 20)
        atexit.register(shared.unlink)
        """,
        resident.SHARED,
        "^/dev/shm/",
        at="end",
    ),
    "memory that the program maps itself": Cause(
        """
        import mmap
        mapped = mmap.mmap(-1, 150 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, len(mapped), 4096): mapped[at] = 1
        """,
        resident.OTHER,
    ),
    "stacks of threads": Cause(
        C
        + textwrap.dedent("""
        import threading, time
        def fill():
            attributes, at, size = (ctypes.c_char * 64)(), ctypes.c_void_p(), ctypes.c_size_t()
            C.pthread_getattr_np(ctypes.c_void_p(C.pthread_self()), attributes)
            C.pthread_attr_getstack(attributes, ctypes.byref(at), ctypes.byref(size))
            ctypes.memset(at.value + 4096, 1, size.value // 2)
            done.wait()
        threading.stack_size(4 << 20)
        done = threading.Event()
        threads = [threading.Thread(target=fill) for _ in range(60)]
        for thread in threads: thread.start()
        time.sleep(.5)
        done.set()
        """),
        resident.STACKS,
    ),
    "Arrow's pool": Cause(
        """
        import pyarrow, ctypes
        kept = pyarrow.allocate_buffer(200 << 20)
        ctypes.memset(kept.address, 1, kept.size)
        """,
        resident.ALLOCATORS,
        "Arrow's pool",
        needs="pyarrow",
        slow=True,
    ),
    "an import": Cause("import numba\n", resident.LIBRARIES, "llvmlite", at="end", needs="numba", slow=True),
    "mimalloc": Cause(
        C + "for _ in range(150_000): ctypes.memset(C.malloc(1000), 1, 1000)\n",
        resident.ALLOCATORS,
        "mimalloc",
        preload="mimalloc",
    ),
    "the stack of the main thread": Cause(
        C
        + textwrap.dedent("""
        import resource, subprocess, time
        code = "#include <string.h>\\nvoid deep(void (*f)(void)) { char a[100 << 20]; memset(a, 1, sizeof a); f(); }"
        compiler = ["cc", "-O0", "-shared", "-fPIC", "-xc", "-", "-o", "./deep.so"]
        subprocess.run(compiler, input=code.encode(), check=True)
        resource.setrlimit(resource.RLIMIT_STACK, (200 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        ctypes.CDLL("./deep.so").deep(ctypes.CFUNCTYPE(None)(lambda: time.sleep(.5)))
        """),
        resident.STACKS,
        "of the main thread",
        slow=True,
    ),
    "a memmap with changes of its own": Cause(
        """
        import numpy as np
        np.lib.format.open_memmap("a.npy", mode="w+", shape=(2 * 10**7,)).flush()
        mine = np.load("a.npy", mmap_mode="c")
        mine += 1
        """,
        resident.FILES,
        r"/a\.npy$",
        at="end",
        slow=True,
    ),
}


def why(folder: Path, *words: object, **options: Any) -> dict[str, Any]:
    done = execute(*FIRSTTOUCH, "why", "--json", "-", *words, cwd=folder, **options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def largest(look: dict[str, Any], figure: str = "resident") -> dict[str, Any]:
    """The largest part, where the parts add up."""
    parts: list[dict[str, Any]] = look["parts"]
    assert sum(part["resident"] for part in parts) == pytest.approx(look["counted"], rel=0.02)
    return max(parts, key=lambda part: part[figure])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if cause.slow else []) for name, cause in CAUSES.items()],
)
def test_the_cause_comes_first(name: str, tmp_path: Path) -> None:
    cause = CAUSES[name]
    if cause.needs:
        pytest.importorskip(cause.needs)
    environment = {"OPENBLAS_NUM_THREADS": "1"}
    if cause.preload:
        library = ctypes.util.find_library(cause.preload) or pytest.skip(f"there is no {cause.preload}")
        environment["LD_PRELOAD"] = library
    program = textwrap.dedent(cause.program).lstrip()
    (tmp_path / "plan.py").write_text(program)
    found = why(tmp_path, "plan.py", env=environment)
    first = largest(found[cause.at])
    lines = program.splitlines()
    what = next((rf"plan\.py:{at}$" for at, line in enumerate(lines, 1) if line.endswith("# here")), cause.what)
    assert first["group"] == cause.group, (first, found["conclusion"], found["notes"])
    assert re.search(what, first["what"]), (first, found["conclusion"])
    assert first["resident"] > 60 * MIB or cause.group == resident.LIBRARIES


def test_a_giant_that_was_never_touched(tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text("import numpy as np\ngiant = np.zeros(10**9)\ngiant[0] = giant[10**7]\n")
    found = why(tmp_path, "plan.py")
    untouched = largest(found["end"], "untouched")
    assert untouched["what"].endswith("plan.py:2")
    assert untouched["untouched"] > 7.9e9
    assert re.fullmatch(r"7\.\d GiB of what .*plan\.py:2 allocated were never written, .*", found["conclusion"][-1])


FORKS = """\
import os, time
import numpy as np
a = np.ones(2 * 10**7)
child = os.fork()
if child == 0:
    a[: len(a) // 4] += 1
    print(os.getpid(), flush=True)
    time.sleep(100)
os.waitpid(child, 0)
"""


def test_a_forked_child_with_a_copy(tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text(FORKS)
    with running(*FIRSTTOUCH, "why", "-q", "plan.py", cwd=tmp_path) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        try:
            found = why(tmp_path, child)
        finally:
            os.kill(child, signal.SIGKILL)
    assert largest(found["now"])["what"].endswith("plan.py:3")
    assert 110 * MIB < found["now"]["shared"] < 150 * MIB
    assert "MiB of it are shared with other processes" in " ".join(found["notes"])
    assert found["cause"]["group"] == resident.ARRAYS


def test_a_program_that_is_not_pythons(tmp_path: Path) -> None:
    code = "#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n"
    code += "int main() { for (int i = 0; i < 100000; i++) memset(malloc(1000), 1, 1000);\n"
    there = f"(void *){17 << 40}, {40 * MIB}, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS"  # as V8 does by chance
    code += f"memset(mmap({there}, -1, 0), 1, {40 * MIB}); usleep(300000); }}\n"
    (tmp_path / "leak.c").write_text(code)
    subprocess.run(["cc", "-O0", "-o", "leak", "leak.c"], cwd=tmp_path, check=True)
    found = why(tmp_path, "./leak")
    first = largest(found["peak"])
    assert (first["group"], first["what"]) == (resident.MALLOC, resident.IN_USE)
    assert not any("firsttouch" in part["group"] for part in found["peak"]["parts"])
    assert found["conclusion"][-1] == "heaptrack, or valgrind --tool=massif, names the code that asked for them."

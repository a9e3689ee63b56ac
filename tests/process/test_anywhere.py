"""Every public name works anywhere: during a fork, in a signal handler, in a chroot, without its files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import firsttouch as ft

#: How each public name is used. A class that is only returned or raised is asked for its name.
USES = {
    "Allocator": "ft.pool().empty(10)",
    "FixedBuffer": "ft.FixedBuffer(4096).empty(10)",
    "aligned": "ft.aligned(4096).zeros(10)",
    "calloc": "ft.calloc().empty(10)",
    "empty": "ft.empty((3, 4), order='F')",
    "empty_like": "ft.empty_like(A)",
    "filled": "ft.filled(ft.pool()).empty(10)",
    "full": "ft.full(10, 1.0, allocator=ft.pool())",
    "full_like": "ft.full_like(A, 1.0, allocator=ft.pool())",
    "get_allocator": "ft.get_allocator(A), repr(ft.get_allocator())",
    "guarded": "ft.guarded().empty(10)",
    "install": "ft.install(), ft.uninstall()",
    "jemalloc": "refused(ft.jemalloc)",
    "limited": "refused(lambda: ft.limited(ft.pool(), '1 KiB').empty(10**6)), ft.last_failure()",
    "malloc": "ft.malloc().empty(10)",
    "measure": "measured()",
    "migrate": "refused(lambda: ft.migrate(A, 0))",
    "mimalloc": "refused(ft.mimalloc)",
    "numa": "refused(lambda: ft.numa(0).empty(10))",
    "numpy_default": "ft.numpy_default().empty(10)",
    "ones": "ft.ones(10, allocator=ft.pool())",
    "ones_like": "ft.ones_like(A, allocator=ft.pool())",
    "pages": "ft.pages(populate=True).empty(10), refused(lambda: ft.pages(hugs=1))",
    "pool": "ft.pool(\"pages(huge='thp')\").empty(10), refused(lambda: ft.pool('pole()'))",
    "receipt": "ft.receipt(ft.pages(populate=True).empty(10))",
    "scratch": "scoped(), decorated(), escaping()",
    "shared": "refused(lambda: pickle.loads(pickle.dumps(ft.shared(10))))",
    "stats": "ft.stats()",
    "touch": "ft.touch(A)",
    "tracked": "ft.tracked(ft.pool()).empty(10)",
    "trim": "ft.trim()",
    "use": "used()",
    "zeros": "ft.zeros((3, 4), order='F')",
    "zeros_like": "ft.zeros_like(A)",
}

NAMES = sorted(ft.__all__)

PRELUDE = """
import asyncio, ctypes, os, pickle, signal, sys, threading, time, warnings
import numpy as np
import firsttouch as ft

A = np.ones(100_000)
warnings.simplefilter("ignore")

class Own:
    def __init__(self): self.kept = {}
    def allocate(self, nbytes, alignment, zeroed):
        memory = ctypes.create_string_buffer(nbytes + alignment)
        address = -(-ctypes.addressof(memory) // alignment) * alignment
        self.kept[address] = memory
        return address
    def deallocate(self, address, nbytes): self.kept.pop(address)

def refused(call):
    try:
        call()
    except (TypeError, ValueError, MemoryError, OSError, RuntimeError, ImportError):
        pass

def measured():
    with ft.measure() as m: np.ones(30_000)
    return str(m), m.assert_at_most(peak="1 GiB")

def scoped():
    with ft.scratch(ft.ScratchBuffer(debug=True)) as s: return s.empty(3000).sum()

@ft.scratch
def decorated(): return {"a": [np.ones(3000)]}

kept = []

@ft.scratch(ft.ScratchBuffer(debug=True), warn=True)
def escaping():
    kept.append(np.ones(3000))
    return np.ones(3000)[1:]

def used():
    with ft.use(ft.pool()): np.ones(30_000)
    with ft.use(Own()): np.ones(30_000)

USE = lambda: ({use})
"""


def run(name: str, code: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
    source = PRELUDE.replace("{use}", USES.get(name, f"ft.{name}")) + code
    done = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=None if environment is None else {**os.environ, **environment},
    )
    assert done.returncode == 0, f"{name}: {done.stdout[-1000:]}{done.stderr[-3000:]}"
    return done.stdout


FORKING = """
sys.setswitchinterval(1e-5)
start = threading.Barrier(2)

def first():
    start.wait()
    USE()

thread = threading.Thread(target=first)
thread.start()
start.wait()
children = []
for _ in range(12):
    child = os.fork()
    if not child:
        try:
            USE()
        finally:
            os._exit(0)
    children.append(child)
    time.sleep(0.0003)
thread.join()
end, left = time.monotonic() + 20, children
while left and time.monotonic() < end:
    left = [child for child in left if os.waitpid(child, os.WNOHANG) == (0, 0)]
    time.sleep(0.02)
for child in left:
    os.kill(child, signal.SIGKILL)
assert not left, f"{len(left)} of {len(children)} children hang"
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_fork_in_the_middle_of_a_first_use(name: str) -> None:
    run(name, FORKING)


SIGNALLED = """
raised, calls = [], []

def handler(*_):
    calls.append(1)
    if len(calls) == 30:  # a slow machine gets on, too
        signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        ft.pool().empty(100_000, "u1")
        USE()
    except BaseException as error:
        raised.append(f"{type(error).__name__}: {error}")

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.002)
USE()
signal.setitimer(signal.ITIMER_REAL, 0)
assert not raised, set(raised)
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_signal_handler_in_the_middle_of_a_first_use(name: str) -> None:
    run(name, SIGNALLED)


#: All names in one process: what the first would load, the second would find.
WITHOUT_FILES = """
before = set(sys.modules)
for use in USES:
    eval(use)
new = {name for name in set(sys.modules) - before if not name.startswith("numpy")}
assert not new, new
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may enter a chroot")
def test_every_name_after_a_chroot(tmp_path: Path) -> None:
    uses = [USES.get(name, f"ft.{name}") for name in NAMES]
    (tmp_path / "proc").mkdir()
    run("stats", f"USES = {uses}\nos.chroot(sys.argv[1]); os.chdir('/')\n{WITHOUT_FILES}", str(tmp_path))


def test_every_name_without_the_package_s_files() -> None:
    """No module is loaded by any public name: what is not read can be renamed, forbidden or gone."""
    uses = [USES.get(name, f"ft.{name}") for name in NAMES]
    run("stats", f"USES = {uses}\nsys.meta_path.clear(); sys.path.clear(); sys.path_hooks.clear()\n{WITHOUT_FILES}")

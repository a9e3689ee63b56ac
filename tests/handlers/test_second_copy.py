"""A second copy of the package in the same process: chained, and each frees its own blocks."""

from pathlib import Path

import pytest

from tests.programs import run

PROLOGUE = """
import gc, importlib.machinery, importlib.util, shutil, sys
import numpy as np
import firsttouch as ft
from firsttouch import _firsttouch as first
from tests import probe

def load(path):
    shutil.copy(first.__file__, path)  # another file, so another library with data of its own
    loader = importlib.machinery.ExtensionFileLoader("second._firsttouch", path)
    spec = importlib.util.spec_from_loader("second._firsttouch", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module

second = load(sys.argv[1])
made = []

def make(seed):
    for size in (100, 40_000, 600_000, 5 << 20):
        array = np.empty(size, np.uint8)
        probe.fill(array, seed)
        made.append((array, seed))

def check():
    assert all(probe.intact(array, seed) for array, seed in made)

def drop():
    check()
    while made:  # those of both copies in turn, the newest and the oldest
        made.pop(0 if len(made) % 2 else -1)
        check()
    assert first.stats()["blocks"] == second.stats()["blocks"] == 0
"""

ORDERS = {
    "first, then second": "make(1); first.install(); make(2); second.install(); make(3)",
    "second, then first": "make(1); second.install(); make(2); first.install(); make(3)",
    "a use before the other's install": """
with ft.use():
    make(1)
second.install()
make(2)
first.install()
make(3)
with ft.use():
    make(4)
second.uninstall()
make(5)
""",
    "on and off": """
for turn in range(12):
    (first.install, second.install, first.uninstall, second.uninstall, second.install)[turn % 5]()
    make(turn)
    if turn % 4 == 3:
        del made[::3]
""",
    "growing what the other made": """
first.install()
make(1)
second.install()
make(2)
for array, seed in list(made):
    size = array.size
    array.resize(size * 3, refcheck=False)
    assert probe.intact(array, seed, size)
    array.resize(size // 2, refcheck=False)
del array
first.uninstall()
make(3)
""",
}


@pytest.mark.quick
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_each_frees_its_own(order: str, tmp_path: Path) -> None:
    copy = tmp_path / "_firsttouch.abi3.so"
    assert run(f"import sys\nsys.argv[1:] = [{str(copy)!r}]\n{PROLOGUE}\n{order}\ndrop()", prologue="") == ""


def test_both_decay_and_both_survive_a_fork(tmp_path: Path) -> None:
    copy = tmp_path / "_firsttouch.abi3.so"
    program = """
import os
first.install(first.make("pool", decay=0.3)); make(1)
second.install(second.make("pool", decay=0.3)); make(2)
child = os.fork()
if not child:
    make(3)
    drop()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
drop()
"""
    assert run(f"import sys\nsys.argv[1:] = [{str(copy)!r}]\n{PROLOGUE}\n{program}", "-W", "ignore", prologue="") == ""

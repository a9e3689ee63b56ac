"""`numa=` of pools and scratch buffers: its meaning, and the values that are rejected."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.programs import environment

pytestmark = pytest.mark.quick

POLICIES: list[Any] = [0, "bind:0", "interleave:all", "local", "preferred:0"]


@pytest.mark.parametrize("numa", POLICIES, ids=str)
def test_a_pool_on_nodes_is_the_pool_over_pages_there(numa: Any) -> None:
    pool = ft.pool(numa=numa, decay=None)
    assert repr(pool) == repr(ft.pool(ft.pages("thp", numa=numa), decay=None)) == repr(eval(repr(pool), vars(ft)))
    first = pool.ones(1 << 18)
    receipt = ft.receipt(first)
    assert receipt is not None
    assert receipt.numa in ("bind:0", "interleave:0", "preferred:0", "local")
    address = first.ctypes.data
    del first
    assert pool.empty(1 << 18).ctypes.data == address
    assert ft.stats(pool).recycled == 1


@pytest.mark.parametrize("numa", POLICIES, ids=str)
def test_scratch_buffers_on_nodes_share_a_warm_pool(numa: Any) -> None:
    buffer, other = ft.ScratchBuffer("64 KiB", numa=numa), ft.ScratchBuffer(numa=numa)
    assert repr(buffer.__class__) == "<class 'firsttouch.ScratchBuffer'>"
    assert "pool(pages(huge='thp', populate=False, lock=False, numa='" in repr(buffer)
    assert repr(eval(repr(buffer), vars(ft))) == repr(buffer)
    with ft.scratch(buffer) as s:
        assert not s.zeros(1000).any()
    large = [one.zeros(1 << 20) for one in (buffer, other)]
    receipts = [ft.receipt(np.frombuffer(a, np.uint8)) for a in large]
    assert all(receipt is not None and "numa='" in receipt.asked for receipt in receipts)  # large ones are the pool's
    assert sum(a.sum() for a in large) == 0


def test_fixed_buffers_on_nodes() -> None:
    buffer = ft.FixedBuffer("1 MiB", numa=0)
    assert repr(buffer) == "FixedBuffer('1 MiB', debug=False, numa='bind:0')"
    assert repr(eval(repr(buffer), vars(ft))) == repr(buffer)
    assert buffer.zeros(1000).sum() == 0
    assert repr(ft.FixedBuffer(numa=0)) == repr(buffer)


@pytest.mark.parametrize(
    "text", ["pool(numa=0)", "pool(numa='interleave:all', decay=None)", "limited(pool(numa=0), 9999)"]
)
def test_expressions_know_it(text: str) -> None:
    assert ft.zeros(10, allocator=text).sum() == 0


def test_it_serves_programs_from_the_command_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import numpy as np, firsttouch as ft\nprint(ft.get_allocator(np.zeros(1 << 20)))\n")
    command = [sys.executable, "-m", "firsttouch", "run", "-q", "--allocator", "pool(numa=0)", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == repr(ft.pool(numa=0))


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "both": (
        lambda: ft.pool(ft.malloc(), numa=0),
        r"pool\(\) got upstream=malloc\(\) and numa='bind:0': give one of them",
    ),
    "both, buffer": (
        lambda: ft.ScratchBuffer(upstream="pool", numa=0),
        r"ScratchBuffer\(\) got upstream='pool' and numa='bind:0'",
    ),
    "both, fixed": (lambda: ft.FixedBuffer(np.zeros(9), numa=0), r"memory of its own \(ndarray\) and numa=0"),
    "slabs": (
        lambda: ft.pool(numa="blocked:0"),
        r"reused for other arrays.* give single arrays pages\(numa='blocked:0'\)",
    ),
    "slabs below": (lambda: ft.pool(ft.numa("blocked:1")), r"pool\(\) cannot use numa='blocked:1'"),
    "slabs in between": (
        lambda: ft.pool(ft.tracked(ft.numa("blocked:0"))),
        r"pool\(\) cannot use numa='blocked:0'",
    ),
    "slabs, buffer": (lambda: ft.ScratchBuffer(numa="blocked:0"), r"ScratchBuffer\(\) cannot use numa='blocked:0'"),
    "slabs, buffer below": (
        lambda: ft.ScratchBuffer(upstream=ft.numa("blocked:0")),
        r"cannot use numa='blocked:0'",
    ),
    "slabs, fixed": (lambda: ft.FixedBuffer(numa="blocked:0"), r"FixedBuffer\(\) cannot use numa='blocked:0'"),
    "no node": (lambda: ft.pool(numa=99), r"numa=99: there is no node 99: this machine has node"),
    "negative": (lambda: ft.ScratchBuffer(numa=-1), r"numa=-1"),
    "misspelt": (lambda: ft.FixedBuffer(numa="bnid:0"), r'"bind:0-1"'),
    "text": (lambda: ft.zeros(1, allocator="pool(numa='blocked:0')"), r"cannot use numa='blocked:0'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_it_can_not_be_is_said_clearly(name: str) -> None:
    make, words = WRONG[name]
    with pytest.raises(ValueError, match=words):
        make()


def test_no_number_and_no_text_is_no_policy() -> None:
    with pytest.raises(TypeError, match="numa=True is a bool"):
        ft.pool(numa=True)
    with pytest.raises(TypeError, match=r"numa=1\.5 is a float"):
        ft.ScratchBuffer(numa=1.5)


def test_what_a_pool_will_use_again_is_not_bound_elsewhere() -> None:
    pool, pages = ft.pool(ft.pages(numa="bind:0")), ft.pages(numa="bind:0")
    for allocator, policy in ((pool, "bind:0"), (ft.tracked(pages), "interleave:0"), (pages, "interleave:0")):
        array = allocator.zeros(4 << 20, np.uint8)
        ft.migrate(array, "interleave:all")
        receipt = ft.receipt(array)
        assert receipt is not None
        assert receipt.numa == policy

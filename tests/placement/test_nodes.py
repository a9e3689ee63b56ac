"""Nodes, and policies from outside."""

import os

import pytest

import firsttouch as ft
from tests.programs import run

pytestmark = pytest.mark.quick


def test_the_topology_is_the_kernels() -> None:
    found = ft.placement.topology()
    assert ft.placement.current_node() in {node.number for node in found}
    assert ft.placement.highest_node() == found[-1].number
    every = {processor for node in found for processor in node.processors}
    assert os.sched_getaffinity(0) <= every
    for node in found:
        assert len(node.distances) == len(found)
        assert 0 <= node.free <= node.memory


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program names x86_64's numbers")
def test_a_policy_from_outside_with_relative_nodes() -> None:
    """Node 0 of those that are allowed is named as one of the next round, as `MPOL_F_RELATIVE_NODES` permits."""
    program = """
    import ctypes, errno
    libc = ctypes.CDLL(None, use_errno=True)
    allowed, named = (ctypes.c_ulong * 16)(), (ctypes.c_ulong * 16)()
    libc.syscall(239, None, allowed, 1024, None, 4)  # get_mempolicy, MPOL_F_MEMS_ALLOWED
    nodes = [node for node in range(1024) if allowed[node // 64] >> node % 64 & 1]
    named[len(nodes) // 64] = 1 << len(nodes) % 64
    failed = libc.syscall(238, 2 | 1 << 14, named, 1024)  # set_mempolicy, MPOL_BIND
    assert not failed, errno.errorcode[ctypes.get_errno()]
    array = np.ones(100_000)
    for policy in (nodes[0], "bind:all", "interleave:all", "local"):
        receipt = ft.receipt(ft.pages(numa=policy).zeros(100_000))
        print(receipt.numa.endswith(f":{nodes[0]}"), receipt.why_not, ft.migrate(array, policy).failed)
    print(*ft.receipt(ft.pages(numa=f"preferred:{nodes[0]}").zeros(100_000)).why_not)
    """
    assert run(program) == "True () 0\n" * 4 + "numa: the memory policy inherited by the process does not allow it\n"

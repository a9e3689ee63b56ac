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


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program names x86_64's number")
def test_a_policy_from_outside_whose_nodes_are_relative_is_not_widened() -> None:
    program = """
    import ctypes
    named = (ctypes.c_ulong * 16)(1)
    assert not ctypes.CDLL(None).syscall(238, 2 | 1 << 14, named, 1024)  # set_mempolicy, MPOL_F_RELATIVE_NODES
    print(*ft.receipt(ft.pages(numa="local").zeros(100_000)).why_not)
    """
    assert run(program) == "numa: the memory policy inherited by the process does not allow it\n"

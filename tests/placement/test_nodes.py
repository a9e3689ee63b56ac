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


REFUSED = """
    import ctypes, struct
    import firsttouch as ft
    libc = ctypes.CDLL(None, use_errno=True)
    # As containers do: EPERM for mbind (237) and set_mempolicy (238), whatever else is asked.
    code = b"".join(struct.pack("HBBI", *line) for line in [
        (0x20, 0, 0, 0), (0x15, 2, 0, 237), (0x15, 1, 0, 238), (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)])
    buffer = ctypes.create_string_buffer(code)
    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
    program = Program(5, ctypes.addressof(buffer))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
    """


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter names x86_64's numbers")
def test_a_container_that_refuses_mbind() -> None:
    program = """
    array = ft.numa(0).zeros(1 << 20)
    print(ft.receipt(array).numa, ft.receipt(array).why_not)
    try:
        ft.numa(0, strict=True).zeros(1 << 20)
    except MemoryError as error:
        print(error)
    """
    printed = run(REFUSED + program).splitlines()
    assert printed[0].startswith("None ('numa: the system does not permit it (EPERM")
    assert "as a strict placement requires: numa: the system does not permit it" in printed[1]


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

"""What Windows does not have is refused with a reason, and nothing that wine shows of Linux stands in for it."""

import os
import re
import sys
from collections.abc import Callable

import pytest

import firsttouch as ft
from firsttouch.process import UnsupportedError

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="of Windows")

N = 10**6


def test_what_wine_could_show_of_linux_is_out_of_reach() -> None:
    assert not any(map(os.path.exists, ("/proc", "/sys")))


RECEIPTS = {
    "pages(huge='2M')": "huge='2M': the user lacks the right \"Lock pages in memory\" (SeLockMemoryPrivilege)",
    "pages(huge='thp')": "huge='thp': the kernel does not support it",
}


@pytest.mark.parametrize("allocator", RECEIPTS)
def test_what_is_not_granted_is_on_the_receipt(allocator: str) -> None:
    a = ft.zeros(N, allocator=allocator)
    receipt = ft.receipt(a)
    assert receipt is not None
    assert (receipt.huge, receipt.numa) == (None, None)
    assert any(line.startswith(RECEIPTS[allocator]) for line in receipt.why_not), receipt
    assert (a == 0).all()


@pytest.mark.parametrize("allocator", ["pages()", "pool()"])
def test_no_page_is_said_to_be_huge(allocator: str) -> None:
    a = ft.zeros(4 * N, allocator=allocator)
    receipt = ft.receipt(a)
    assert receipt is not None
    assert receipt.huge is None
    a[:] = 1
    seen = ft.inspect(a)
    assert seen.huge == 0
    assert seen.small is not None
    assert seen.small >= a.nbytes


REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "a node that does not exist": (lambda: ft.numa(5), ValueError, "there is no node 5: this machine has node 0"),
    "another policy with it": (lambda: ft.pages(numa="interleave:0-5"), ValueError, "there is no node 1"),
    "one that is preferred": (lambda: ft.pages(numa="preferred:5"), ValueError, "there is no node 5"),
    "to move to": (lambda: ft.migrate(ft.zeros(N), 5), ValueError, "there is no node 5"),
    "a strict placement": (lambda: ft.pages(huge="thp", strict=True).zeros(N), MemoryError, "huge='thp': "),
    "moving pages": (lambda: ft.migrate(ft.zeros(N), 0), OSError, "the kernel does not support it"),
    "an allocator that is not built": (lambda: ft.jemalloc(), UnsupportedError, "does not include jemalloc"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    call, error, words = REFUSED[what]
    with pytest.raises(error, match=re.escape(words)):
        call()


def test_a_page_that_was_not_touched_is_not_there() -> None:
    a = ft.pages(huge=False).zeros(4 * N)
    assert ft.inspect(a).absent == ft.inspect(a).pages * 4096
    assert a.sum() == 0


def test_locked_pages() -> None:
    receipt = ft.receipt(ft.pages(lock=True).zeros(N // 10))
    assert receipt is not None
    assert (receipt.locked, receipt.why_not) == (True, ())


def test_a_node_is_given_when_memory_is_mapped() -> None:
    a = ft.numa(0).zeros(N)
    receipt = ft.receipt(a)
    assert receipt is not None
    assert (receipt.numa, receipt.why_not) == ("bind:0", ())
    assert (a == 0).all()
    (node,) = ft.placement.topology()
    assert (node.number, ft.placement.current_node()) == (0, 0)


def test_a_budget_that_was_found_says_where() -> None:
    with pytest.raises(MemoryError, match=r"the machine allows|the commit limit allows"):
        ft.limited(ft.pool(), "auto").empty(2**45)

"""Allocators written in Python: their exceptions are passed on, and their results are checked."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import _firsttouch
from tests.trust.expressions import Own

pytestmark = pytest.mark.quick


class Counted(Own):
    """Notes what is asked of it and what comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, int, bool]] = []
        self.returned: list[int] = []

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        self.asked.append((nbytes, alignment, zeroed))
        return super().allocate(nbytes, alignment, zeroed)

    def deallocate(self, address: int, nbytes: int) -> None:
        self.returned.append(nbytes)
        super().deallocate(address, nbytes)


class Failing(Counted):
    """Does in `allocate` what it is told."""

    def __init__(self, act: Callable[[int], Any]) -> None:
        super().__init__()
        self.act = act

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        found: int = self.act(super().allocate(nbytes, alignment, zeroed))
        return found

    def deallocate(self, address: int, nbytes: int) -> None:
        """Takes back whatever it gave out."""


def test_it_serves_constructors_and_blocks() -> None:
    own = Counted()
    assert isinstance(own, ft.custom.OwnAllocator)
    array = ft.full((10, 10), 2.0, allocator=own)
    assert own.asked[-1] == (800, 64, False)
    zeros = ft.zeros(100, np.uint8, allocator=own)
    assert own.asked[-1] == (100, 64, True)
    with ft.use(own):
        other = array + array
    assert other.sum() == 400
    assert not zeros.any()
    assert len(own.kept) == 3
    del array, other, zeros
    gc.collect()
    assert own.kept == {}
    assert sorted(own.returned) == sorted(nbytes for nbytes, _, _ in own.asked)


@pytest.mark.parametrize(
    ("act", "kind", "said"),
    [
        (lambda _: None, MemoryError, "returned None"),
        (lambda _: 0, MemoryError, "returned 0"),
        (lambda address: address + 8, ValueError, "not a multiple of 64"),
        (lambda address: float(address), TypeError, "not an address"),
        (lambda address: str(address), TypeError, "not an address"),
        (lambda _: True, TypeError, "returned True, which is not an address"),
        (lambda _: -64, TypeError, "returned -64, which is not an address"),
        (lambda _: 2**70, TypeError, "not an address"),
    ],
    ids=["none", "zero", "misaligned", "float", "text", "bool", "negative", "huge"],
)
def test_answers_that_are_no_address(act: Callable[[int], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        ft.zeros(100, allocator=Failing(act))


def test_an_address_at_which_an_array_lives() -> None:
    first: list[int] = []

    def act(address: int) -> int:
        first.append(address)
        return first[0]

    own = Failing(act)
    array = ft.zeros(100, allocator=own)
    with pytest.raises(ValueError, match=r"allocate\(400, 64, True\) returned 0x[0-9a-f]+, at which an array is live"):
        ft.zeros(50, allocator=own)
    assert not array.any()


def test_install_refuses_it_and_names_what_it_takes() -> None:
    with pytest.raises(TypeError, match=r"install\(\) cannot take .*Counted .*from_functions\(\).*use\(\)"):
        ft.install(Counted())
    assert not ft.is_installed()


class Cut:
    """Cuts blocks from an array, the first where that begins."""

    def __init__(self, array: "np.ndarray[Any, Any]") -> None:
        self.array, self.cut = array, 0

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        at = int(self.array.ctypes.data) + self.cut
        self.cut += -(-nbytes // alignment) * alignment
        return at

    def deallocate(self, address: int, nbytes: int) -> None:
        """Keeps all of it."""


@pytest.mark.parametrize("below", ["pool()", "pages()", "calloc()", "limited(pages(), '1 GiB')", "filled(pool())"])
def test_blocks_may_lie_in_an_array_of_any_allocator(below: str) -> None:
    own = Cut(ft.zeros(100_000, "u1", allocator=below))
    array = ft.empty(20_000, "u1", allocator=own)
    assert array.ctypes.data == own.array.ctypes.data
    assert repr(ft.get_allocator(array)) == repr(own)
    del array
    own.array[:] = 1
    assert own.array.sum() == 100_000


def raising(what: BaseException) -> Failing:
    def act(_: int) -> None:
        raise what

    return Failing(act)


@pytest.mark.parametrize("what", [KeyboardInterrupt("stop"), SystemExit(7), RuntimeError("none left")])
def test_under_use_what_is_raised_is_the_cause_of_numpys_error(what: BaseException) -> None:
    for make in (np.empty, np.zeros):
        with pytest.raises(MemoryError, match="Unable to allocate") as caught, ft.use(raising(what)):
            make(10**6)
        assert caught.value.__cause__ is what
    with pytest.raises(MemoryError) as other, ft.use("limited(pool(), 1000)"):
        np.empty(10**6)
    assert other.value.__cause__ is None
    for allocate in (ft.empty, ft.ones):
        with pytest.raises(type(what)), ft.use(raising(what)):
            allocate(100_000)
        with pytest.raises(type(what)) as found:
            allocate(100_000, allocator=raising(what))
        assert found.value is what
        assert what.__cause__ is None


@pytest.mark.parametrize("inner", ["empty", "ones"])
@pytest.mark.parametrize("around", [lambda own: own, ft.pool, ft.filled])
def test_recursion_without_end_is_an_error(inner: str, around: Callable[[Any], Any]) -> None:
    class Endless:
        asked = 0

        def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
            Endless.asked += 1
            return int(getattr(ft, inner)(nbytes, "u1", allocator=allocator).ctypes.data)

        def deallocate(self, address: int, nbytes: int) -> None:
            """Never called."""

    own = Endless()
    allocator = around(own)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)  # of more calls than a thread's stack has room for
    try:
        with pytest.raises((RecursionError, MemoryError)):
            ft.empty(100_000, allocator=allocator)
        assert Endless.asked < 1_000
        with pytest.raises((RecursionError, MemoryError)), ft.use(allocator):
            np.ones(100_000)
    finally:
        sys.setrecursionlimit(limit)


def test_a_chain_of_allocators_may_be_long() -> None:
    class Link(Counted):
        def __init__(self, behind: Any) -> None:
            super().__init__()
            self.behind = behind

        def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
            if self.behind:
                ft.empty(nbytes, "u1", allocator=self.behind)
            return super().allocate(nbytes, alignment, zeroed)

    chain: Any = None
    for _ in range(40):
        chain = Link(chain)
    assert ft.ones(1000, allocator=chain).sum() == 1000


def test_an_object_is_one_allocator() -> None:
    own, other = Counted(), Counted()
    a, b = ft.zeros(1000, allocator=own), ft.zeros(1000, allocator=own)
    assert ft.get_allocator(a) == ft.get_allocator(b) != ft.get_allocator(ft.zeros(1000, allocator=other))
    assert ft.array(a, allocator=own, copy=False) is a
    with pytest.raises(ValueError, match="does not come from"):
        ft.array(a, allocator=other, copy=False)
    del a, b
    gc.collect()
    assert ft.get_allocator(ft.zeros(1000, allocator=own)) != ft.get_allocator(ft.zeros(1000, allocator=Counted()))


def test_an_object_that_is_named_while_its_allocator_is_made_is_one_allocator() -> None:
    class Named(Own):
        def __repr__(self) -> str:
            if not hasattr(self, "made"):
                self.made = None
                self.made = ft.get_allocator(ft.empty(100, allocator=self))
            return "Named()"

    own = Named()
    assert ft.get_allocator(ft.empty(100, allocator=own)) == own.made


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_blocks_come_back_once_there_is_memory_to_say_so() -> None:
    """Those whose numbers had no memory are lost, and no more."""
    testcapi = pytest.importorskip("_testcapi")
    own = Counted()
    for n in range(4):
        array = ft.empty(10_000, allocator=own)
        testcapi.set_nomemory(n, n + 1)
        try:
            del array
            _firsttouch.deliver()
        except MemoryError:
            pass
        finally:
            testcapi.remove_mem_hooks()
    kept = len(own.kept)
    for _ in range(3):
        ft.empty(10_000, allocator=own)
        _firsttouch.deliver()
    assert len(own.kept) == kept <= 4

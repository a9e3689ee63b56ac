"""What a decorated function reports about arrays that outlive its call, and about those kept by an exception."""

import gc
import linecache
import traceback
import warnings
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import LARGE, MIDDLE, Kept, churn

pytestmark = pytest.mark.quick

CACHE: dict[str, Any] = {}


def library(x: Any) -> Any:
    """Somebody else's function, which caches an array made on the way."""
    if "window" not in CACHE:
        CACHE["window"] = np.full(MIDDLE, 0.5)
    return x * CACHE["window"]


@pytest.fixture(autouse=True)
def _cleared() -> Any:
    yield
    CACHE.clear()


def test_a_library_that_caches_what_it_made_inside() -> None:
    buffer = ft.ScratchBuffer()

    @ft.scratch(buffer)
    def step(x: Any) -> Any:
        return library(x)

    for _ in range(50):
        assert (step(np.ones(MIDDLE)) == 0.5).all()
        churn(1)
    assert (CACHE["window"] == 0.5).all()
    assert 8 * MIDDLE <= buffer.used < 9 * MIDDLE
    CACHE.clear()
    assert buffer.used == 0


@pytest.mark.parametrize("shape", [(100, 5), (3, 4, 500)])
def test_a_warning_names_shape_type_and_function(shape: tuple[int, ...]) -> None:
    kept: list[Any] = []

    @ft.scratch(escape="warn")
    def step() -> None:
        kept.append(np.ones(shape, np.float32))
        np.ones(MIDDLE)

    with pytest.warns(ft.buffers.EscapeWarning) as caught:
        step()
    (warning,) = caught
    assert f"float32 {shape}" in str(warning.message)
    assert "step" in str(warning.message)
    assert "ScratchBuffer(" in str(warning.message)
    assert warning.filename == __file__
    assert "step()" in linecache.getline(__file__, warning.lineno)
    churn()
    assert (kept[0] == 1).all()


def test_an_error_names_them_too_and_the_arrays_are_valid() -> None:
    buffer = ft.ScratchBuffer()

    @ft.scratch(buffer, escape="raise")
    def step() -> Any:
        CACHE["a"], CACHE["b"] = np.arange(5_000), {"deep": [np.ones((20, 30))]}
        return CACHE["a"] + 1

    with pytest.raises(
        ft.buffers.EscapeError, match=r"2 arrays.*step\(\).*int64 \(5000,\).*float64 \(20, 30\)"
    ) as error:
        step()
    assert issubclass(ft.buffers.EscapeError, RuntimeError)
    assert len(error.value.survivors) == 2
    churn()
    assert (CACHE["a"] == np.arange(5_000)).all()
    CACHE.clear()
    del error
    gc.collect()
    assert buffer.used == 0
    assert ft.get_allocator() == ft.numpy_default()


def test_the_line_that_made_it_in_debug_mode() -> None:
    @ft.scratch(escape="raise", debug=True)
    def step() -> None:
        CACHE["a"] = np.ones(MIDDLE)

    with pytest.raises(ft.buffers.EscapeError, match=r"made at .*test_escapes\.py:\d+") as error:
        step()
    line = int(str(error.value).split("test_escapes.py:")[1].split()[0].rstrip(".;,"))
    assert "np.ones(MIDDLE)" in linecache.getline(__file__, line)


def test_what_is_returned_and_what_only_the_collector_finds_is_no_escape() -> None:
    class Ring:
        def __init__(self) -> None:
            self.array, self.ring = np.ones(MIDDLE), self

    @ft.scratch(escape="raise")
    def step(out: Any) -> Any:
        Ring()
        out[:] = np.ones(MIDDLE)
        return [np.ones(MIDDLE), out[3:]]

    out = np.zeros(MIDDLE)
    found = step(out)
    assert np.shares_memory(found[1], out)
    assert found[0].all()


@pytest.mark.parametrize(
    "held", [lambda: np.ma.ones(MIDDLE), lambda: (x for x in np.ones(MIDDLE)), lambda: {1: [Own()]}]
)
def test_a_result_that_can_not_be_copied_counts(held: Any) -> None:
    with pytest.raises(ft.buffers.EscapeError):
        ft.scratch(escape="raise")(held)()
    with pytest.warns(ft.buffers.EscapeWarning):
        kept = ft.scratch(escape="warn")(held)()
    churn()
    assert kept is not None


class Own:
    def __init__(self) -> None:
        self.array = np.ones(MIDDLE)


def test_large_and_small_ones_have_memory_of_their_own() -> None:
    """They escape at no cost: nothing of the buffer is held."""

    @ft.scratch(escape="raise")
    def step() -> None:
        CACHE["small"] = np.ones(50)

    step()
    assert CACHE["small"].all()


def test_keeping_says_nothing() -> None:
    @ft.scratch(escape="keep")
    def step() -> None:
        CACHE["a"] = np.ones(MIDDLE)

    with warnings.catch_warnings(action="error"):
        step()


@pytest.mark.parametrize("escape", ["warn", "raise"])
def test_a_block_can_only_keep_and_says_so(escape: Any) -> None:
    scratch = ft.scratch(escape=escape)
    with pytest.raises((TypeError, ValueError), match=rf"escape=.{escape}.*decorator.*local name.*alive"), scratch:
        pass
    assert ft.get_allocator() == ft.numpy_default()


def failing(kept: Kept) -> None:
    inner = kept.make()
    kept.make(LARGE)
    if inner.any():
        raise ValueError("mine")


@pytest.mark.parametrize("escape", ["keep", "warn", "raise"])
def test_a_stored_exception_keeps_the_locals_of_its_frames(escape: Any) -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()
    errors: list[BaseException] = []
    for _ in range(5):
        try:
            ft.scratch(buffer, escape=escape)(failing)(kept)
        except ValueError as raised:
            errors.append(raised)
    kept.clear()
    assert buffer.used >= 5 * MIDDLE
    with ft.scratch(buffer):
        churn()
    for error in errors:
        frame = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code is failing.__code__]
        assert frame[0].f_locals["inner"].any()
        assert str(error) == "mine"
        del frame
    del error
    errors.clear()
    gc.collect()
    assert buffer.used == 0


def test_an_exception_that_leaves_a_call_says_what_it_keeps() -> None:
    def fails() -> None:
        matrix = np.ones((70, 80))
        raise ValueError(matrix.shape)

    with pytest.raises(ValueError, match="70") as error:
        ft.scratch(escape="warn")(fails)()
    (note,) = error.value.__notes__
    assert "float64 (70, 80)" in note
    with pytest.raises(ValueError, match="70"):
        ft.scratch(escape="raise")(fails)()


def test_through_many_scopes() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()

    @ft.scratch(buffer)
    def deep(levels: int) -> None:
        here = kept.make()
        if levels:
            with ft.scratch(buffer):
                deep(levels - 1)
        raise KeyError(here.size)

    with pytest.raises(KeyError):
        deep(10)
    churn()
    assert kept.intact()
    kept.clear()
    gc.collect()
    assert buffer.used == 0
    assert ft.get_allocator() == ft.numpy_default()

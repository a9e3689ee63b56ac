"""The tasks of the experiments do their work, on the intended memory."""

from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch.tools.bench.tasks import refill, touch, triad, zeros

MIB = 1 << 20
PAGE = 4096

needs_states = pytest.mark.skipif(ft.inspect(np.zeros(MIB)).zero_page is None, reason="no source tells the zero page")


@needs_states
def test_a_triad_that_was_never_written_reads_the_zero_page_alone_and_another_memory() -> None:
    both = triad.measure(MIB, "pages()", seconds=0.0)
    found = both["never written"]
    assert found["before"] == {"absent": 3 * MIB, "zero_page": 0, "real": 0, "huge": 0}
    assert found["after"] == {"absent": 0, "zero_page": 3 * MIB, "real": 0, "huge": 0}
    assert both["written"]["before"]["real"] == both["written"]["after"]["real"] == 3 * MIB
    assert both["written"]["bits"] == found["bits"] == 0


@pytest.mark.parametrize("items", [1, triad.BLOCK, 3 * triad.BLOCK + 7])
def test_the_triad_by_blocks_is_the_triad(items: int) -> None:
    random = np.random.default_rng(0)
    a, b, c, d = (random.random(items) for _ in range(4))
    triad.triad(a, b, c, d, np.empty(triad.BLOCK))
    assert np.array_equal(a, b + c * d)


@needs_states
@pytest.mark.parametrize("before", refill.BEFORE)
def test_only_a_first_fill_of_pages_that_were_not_written_faults(before: str) -> None:
    found = dict(zip(refill.NAMES, refill.turn(MIB, before, "pages()"), strict=True))
    pages = found["bytes"] / PAGE
    few = 8  # those of Python itself
    assert found["second faults"] <= few
    if before == "written first":
        assert found["first faults"] <= few
    else:
        assert pages <= found["first faults"] <= pages + few
    assert found["absent"] == (MIB if before == "never touched" else 0)
    assert found["zero"] == (MIB if before == "read first" else 0)


@pytest.mark.parametrize("maker", zeros.MAKERS)
def test_every_way_to_zeros_gives_zeros(maker: str) -> None:
    array = zeros.MAKERS[maker](1000)
    assert array.shape == (1000,)
    assert array.dtype == np.float64
    if maker not in ("np.empty", "np.ones"):
        assert not array.any()


def test_a_life_has_its_phases_and_writes_what_it_should() -> None:
    (create, summed, write, total), array = zeros.life(np.zeros, 1000, 5)
    assert min(create, summed, write) > 0
    assert total == pytest.approx(create + summed + write)
    assert array.sum() == 200


def test_lives_are_told_by_regime_and_step() -> None:
    found = zeros.measure("np.zeros", MIB, 0.0, most=3)
    assert set(found) == {"fresh 1", "fresh 5", "recycled 1", "recycled 5"}
    assert found["fresh 1"]["total"]["lives"] == 3
    assert found["recycled 5"]["total"]["lives"] == 1
    one = found["fresh 1"]["total"]
    assert one["minimum"] <= one["median"] <= one["maximum"]
    assert len(one["samples"]) == 3


@needs_states
def test_fresh_lives_are_on_memory_that_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    pool = ft.pool()

    def make(items: int) -> Any:
        array = pool.zeros(items)
        absent = ft.inspect(array).absent
        seen.append(absent is not None and absent >= items * 8)
        return array

    monkeypatch.setitem(zeros.MAKERS, "np.zeros", make)
    zeros.measure("np.zeros", MIB, 0.0, most=4)
    assert all(seen[:8])
    assert not any(seen[9:])  # what was freed comes back


@pytest.mark.parametrize("size", [PAGE, MIB, MIB + PAGE - 1])
@pytest.mark.parametrize("kind", [np.uint8, np.uint64])
def test_the_loop_writes_every_item(size: int, kind: Any) -> None:
    size -= size % np.dtype(kind).itemsize
    array = np.zeros(size, np.uint8)
    touch.loop(array, kind)
    assert (array.view(kind) == 1).all()


@needs_states
@pytest.mark.parametrize("threads", [1, 3])
def test_a_touch_leaves_no_page_out(threads: int) -> None:
    array = ft.pages().zeros(MIB + 5000, np.uint8)[1234:]
    touch.touched(array, threads)
    assert ft.inspect(array).real == ft.inspect(array).pages * PAGE


@needs_states
@pytest.mark.parametrize("way", touch.NEW)
@pytest.mark.parametrize("maker", ["malloc", "np.zeros"])
def test_every_way_makes_everything_real(maker: str, way: str) -> None:
    found = touch.allocated(MIB, maker, way)
    assert found["missing"] == 0
    assert found["rate"] > 0


@pytest.mark.parametrize("way", ["memset", "memcpy"])
def test_memory_that_exists_is_written(way: str) -> None:
    assert touch.existing(MIB, "malloc", way)["missing"] == 0


@needs_states
@pytest.mark.parametrize("populate", [0, 2])
def test_placed_pages_are_real_and_say_what_could_not_be_had(populate: int) -> None:
    import os

    allowed = os.sched_getaffinity(0)
    try:
        found = touch.placed(4 * MIB, ["2M"], populate, 2, len(allowed))
    finally:
        os.sched_setaffinity(0, allowed)
    assert found["missing"] == 0
    assert found["huge"] == found["bytes"] or found["why not"]

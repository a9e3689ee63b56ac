"""Sentences about figures are true, even if the figures are not the expected ones."""

from typing import Any

import pytest

from firsttouch.tools.bench import zeros

MIB = 1 << 20


def found(size: int, eager: float, lazy: float, used: float) -> zeros.Found:
    """Medians where creation takes so long in both ways, and all three phases one second and `used` seconds."""

    def phases(create: float, total: float) -> dict[str, Any]:
        cells = {"create": {"median": create}, "total": {"median": total}}
        return {f"{regime} {step}": cells for regime in ("fresh", "recycled") for step in (1, 5)}

    return {(zeros.EAGER, size): phases(eager, 1.0), (zeros.LAZY, size): phases(lazy, used)}


def test_lazy_zeros_that_look_quick() -> None:
    said = zeros.answer(8 * MIB, found(8 * MIB, 1.0, 0.01, 0.8))
    assert "looks 100 times as fast** with np.zeros as with np.empty + fill(0)" in said
    assert "writing is 1.25 times as fast" in said
    assert "at the first touch instead" in said


@pytest.mark.parametrize("lazy", [1.0, 1.04, 2.0])
def test_lazy_zeros_that_are_not_even_quick_to_create(lazy: float) -> None:
    said = zeros.answer(4096, found(4096, 1.0, lazy, 1.1))
    assert "looks" not in said
    assert "first touch" not in said
    assert f"{1 / lazy:.2g} times as fast" in said


def test_nothing_is_recycled_where_glibc_asks_the_kernel() -> None:
    said = zeros.recycled(64 * MIB, found(64 * MIB, 1.0, 0.01, 0.8))
    assert "has to be written" not in said
    assert "takes every array from the kernel" in said
    assert "has to be written" in zeros.recycled(MIB, found(MIB, 1.0, 1.0, 1.0))

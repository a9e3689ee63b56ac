"""Benchmarks of asv, found and run by its own runner."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch.asv import track
from tests.probe import KIB


class Filters:
    params = (10**5, 10**6)

    def setup(self, n: int) -> None:
        self.x = np.ones(n)
        self.calls = 0

    def _smooth(self) -> Any:
        self.calls += 1
        return self.x[1:] + self.x[:-1]

    @track("peak")
    def track_smooth(self, n: int) -> None:
        """What smoothing holds."""
        self._smooth()

    @track("arrays", warm_up=False)
    def track_arrays(self, n: int) -> None:
        self._smooth()

    @track("first_touched", allocator="pool()")
    def track_touched(self, n: int) -> None:
        self._smooth()
        self._smooth()

    @track("recycled")
    def track_nothing(self, n: int) -> None:
        self._smooth()


def _benchmark(name: str) -> Any:
    """The benchmark that asv makes of a method."""
    runner = pytest.importorskip("asv_runner.benchmarks.track", reason="needs asv_runner")
    suite = Filters()
    function = getattr(suite, name)
    return runner.TrackBenchmark(f"Filters.{name}", function, [function, suite, ModuleType("suite")])


@pytest.mark.parametrize(("name", "unit"), [("track_smooth", "bytes"), ("track_arrays", "arrays")])
def test_asv_runs_them(name: str, unit: str) -> None:
    benchmark = _benchmark(name)
    assert benchmark.unit == unit
    for n in Filters.params:
        benchmark._current_params = (n,)
        benchmark.do_setup()
        assert benchmark.run(n) == (8 * (n - 1) if unit == "bytes" else 1)


def test_what_is_touched_first_in_a_pool() -> None:
    benchmark = _benchmark("track_touched")
    benchmark._current_params = (10**6,)
    benchmark.do_setup()
    assert 0 <= benchmark.run(10**6) - 8 * 10**6 < 64 * KIB  # the second call finds the memory of the first


def test_what_is_not_known_is_an_error() -> None:
    if ft.is_installed():
        pytest.skip("a pool is installed")
    suite = Filters()
    suite.setup(10**5)
    with pytest.raises(ValueError, match="recycled is not known"):
        suite.track_nothing(10**5)
    assert suite.calls == 2  # once to warm up
    with pytest.raises(TypeError, match="no figure 'peek'"):
        track("peek")
    assert Filters.track_smooth.__doc__ == "What smoothing holds."

"""Shared arrays between workers: lost with their sender they are requested again, and what is spilled is data."""

import pytest

pytest.importorskip("distributed", reason="Dask's distributed is not installed")
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from distributed.spill import SpillBuffer

import firsttouch as ft
import firsttouch.dask
from tests.dask.work import cluster
from tests.shared import work
from tests.shared.work import memory_files


def test_no_result_is_lost() -> None:
    with cluster(workers=2) as client:
        first, second = client.scheduler_info()["workers"]
        for function in (work.made, work.made_within):  # a handle of its own, and one in a pickle
            made = client.submit(function, 1000, workers=[first], pure=False)
            client.submit(work.nothing, made, workers=[first], pure=False).result()
            client.run(work.lose_the_next, workers=[second])
            assert client.submit(work.total_of, made, workers=[second], pure=False).result(60) == 499_500
            assert client.run(work.came_through, workers=[second]) == {second: True}


def test_the_client_is_told() -> None:
    with cluster() as client:
        made = client.submit(work.made, 1000)
        client.submit(work.nothing, made).result()
        work.lose_the_next()
        with pytest.raises(ft.sharing.SharedArrayError, match="its process has ended"):
            made.result(60)
        assert made.result(60).sum() == 499_500


@dataclass
class Holder:
    """Anything that has an array in it, and is pickled as a whole."""

    array: np.ndarray

    def __sizeof__(self) -> int:
        return self.array.nbytes


@pytest.mark.parametrize("wrap", [lambda a: a, lambda a: [a], lambda a: {"a": a}, Holder, lambda a: a[::2]])
def test_what_is_spilled_is_data(tmp_path: Path, wrap: Callable[[np.ndarray], Any]) -> None:
    buffer: Any = SpillBuffer(str(tmp_path), target=1000)
    before = memory_files()
    buffer["key"] = wrap(ft.sharing.share(np.arange(10_000)))
    assert len(buffer.slow) == 1
    assert memory_files() == before  # no ticket is out, and nothing waits for one
    found = buffer["key"]
    array = {list: lambda: found[0], dict: lambda: found["a"], Holder: lambda: found.array}.get(
        type(found), lambda: found
    )()
    assert type(array) is np.ndarray
    assert array.flags.writeable
    assert array[-1] in (9_998, 9_999)

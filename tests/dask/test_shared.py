"""Shared arrays between workers: what is spilled is data, and what is sent is a handle."""

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
from tests.shared.work import memory_files


@dataclass
class Holder:
    """Anything that has an array in it, and is pickled as a whole."""

    array: np.ndarray

    def __sizeof__(self) -> int:
        return self.array.nbytes


@pytest.mark.parametrize("wrap", [lambda a: a, Holder, lambda a: a[::2]])
def test_what_is_spilled_is_data(tmp_path: Path, wrap: Callable[[np.ndarray], Any]) -> None:
    buffer: Any = SpillBuffer(str(tmp_path), target=1000)
    before = memory_files()
    buffer["key"] = wrap(ft.sharing.share(np.arange(10_000)))
    assert len(buffer.slow) == 1
    assert memory_files() == before  # no handle is under way, and nothing waits for one
    found = buffer["key"]
    array = found.array if isinstance(found, Holder) else found
    assert type(array) is np.ndarray
    assert array.flags.writeable
    assert array[-1] in (9_998, 9_999)

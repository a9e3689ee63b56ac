"""Untouched memory, and kernels that refuse queries."""

import mmap
from collections.abc import Iterator

import numpy as np
import pytest

from firsttouch import _firsttouch

PAGE = mmap.PAGESIZE


def fresh(pages: int) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    """An array on small pages that aren't there yet; it begins with a page."""
    area = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(area, np.uint8)


@pytest.fixture(autouse=True)
def _sources_answer_again() -> Iterator[None]:
    yield
    _firsttouch.fail_calls([])

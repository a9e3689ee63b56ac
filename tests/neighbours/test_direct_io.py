"""A file read into an array bypassing the page cache: O_DIRECT requires memory aligned to blocks."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft

SIZE = 1 << 20


@pytest.fixture
def file(tmp_path: Path) -> int:
    """A file of numbers, opened with O_DIRECT."""
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(SIZE // 8).tobytes())
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        pytest.skip("this file system has no O_DIRECT")


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="this platform has no O_DIRECT")
@pytest.mark.parametrize("make", ["empty", "zeros"])
def test_read_into_an_aligned_array(file: int, make: str) -> None:
    array = getattr(ft.aligned(4096), make)(SIZE // 8, np.int64)
    try:
        assert array.ctypes.data % 4096 == 0
        assert os.preadv(file, [array], 0) == SIZE
        assert os.preadv(file, [array[512:1024]], SIZE // 2) == 4096
    finally:
        os.close(file)
    expected = np.arange(SIZE // 8)
    expected[512:1024] = expected[SIZE // 16 : SIZE // 16 + 512]
    np.testing.assert_array_equal(array, expected)

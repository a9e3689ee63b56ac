"""One test for each bug. All of them pass without firsttouch."""

import ctypes

import numpy as np
from planted import call

#: So large that NumPy's memory for it comes fresh from the system, and reads zero.
FRESH = 5 << 20


def test_write_past_the_end(twin):
    x = np.zeros(8)
    call(f"ramp_{twin}", x, x.size)
    assert x.tolist() == list(range(8))


def test_read_past_the_end(twin):
    x = np.arange(16.0)
    assert call(f"top_{twin}", x, x.size, returns=ctypes.c_double) == 15


def test_write_before_the_beginning(twin):
    counts, bins, weights = np.zeros(8, np.int64), np.array([0, 1, 2, 2]), np.array([0, 1, 1, 1])
    call(f"count_{twin}", counts, bins, weights, bins.size)
    assert counts[:3].tolist() == [1, 2, 0]


def test_read_before_the_beginning(twin):
    x = np.array([1.0, 2, 3, 2, 5, 6, 7, 7])
    assert call(f"rises_{twin}", x, x.size) == 5


def test_off_by_one_row(twin):
    x = np.ones((4, 16))
    assert call(f"below_{twin}", x, 4, 16, returns=ctypes.c_double) == 48


def test_single_taken_for_double(twin):
    x = np.ones(64, np.float32)
    assert call(f"finite_{twin}", x, x.size) == 64


def test_use_after_free(twin):
    x = np.ones(1000)
    call("keep", x)
    if twin == "wrong":
        del x
    assert call("look_back") == 1


def test_pointer_from_before_a_resize(twin):
    x = np.ones(1000)
    call("keep", x)
    x.resize(100_000, refcheck=False)
    if twin == "right":
        call("keep", x)
    assert call("look_back") == 1


def test_double_length_copy(twin):
    x = np.arange(7, 7 + 1024, dtype=np.int16)
    assert call(f"copied_{twin}", x, x.size, returns=ctypes.c_double) == 7


def test_stride_ignored(twin):
    x = np.arange(64.0)[::-1]
    assert call(f"seen_{twin}", x, x.size, x.strides[0]) == 64


def test_text_without_an_end(twin):
    x = np.array([b"12345678"], "S8")
    assert call(f"length_{twin}", x, x.itemsize) == 8


def test_one_byte_into_the_gap(twin):
    x = np.zeros(60, np.uint8)
    call(f"label_{twin}", x, x.size)
    assert x[0] == ord("x")


def test_search_without_a_bound(twin):
    x = np.ones(512, np.uint8)
    assert call(f"find_{twin}", x, x.size, 7) == -1


def test_added_to_what_was_never_set(twin):
    x, out = np.ones(FRESH), np.empty(FRESH)
    call(f"doubled_{twin}", out, x, x.size)
    assert (out == 2).all()


def test_output_partly_filled(twin):
    x, out = np.ones(FRESH), np.empty(FRESH)
    call(f"slopes_{twin}", out, x, x.size)
    assert (out == 0).all()


def test_limits_never_set(twin):
    """NaN compares as false: only a pattern of great numbers shows this one."""
    x, limits = np.ones(FRESH), np.empty(FRESH)
    if twin == "right":
        limits[:] = 0
    assert call("outliers", x, limits, x.size) == 0


def test_index_never_set(twin):
    """Without any C: the mistake is in Python."""
    table, index = np.arange(8.0), np.empty(FRESH, np.int64)
    if twin == "right":
        index[:] = 0
    assert table[index].sum() == 0

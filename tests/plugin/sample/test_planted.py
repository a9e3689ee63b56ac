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


def test_one_byte_into_the_gap(twin):
    x = np.zeros(60, np.uint8)
    call(f"label_{twin}", x, x.size)
    assert x[0] == ord("x")


def test_added_to_what_was_never_set(twin):
    x, out = np.ones(FRESH), np.empty(FRESH)
    call(f"doubled_{twin}", out, x, x.size)
    assert (out == 2).all()


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

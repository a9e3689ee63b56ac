"""Writes one element behind an array, as a mistaken extension would."""

import ctypes

import numpy as np

a = np.zeros(100_000)
ctypes.memset(a.ctypes.data, 1, a.nbytes + a.itemsize)
print("done")

"""An array passed to another process: how long that takes until the reply, and who owns the pages."""

from __future__ import annotations

import atexit
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from statistics import median as middle

import numpy as np

import firsttouch as ft

#: How the array is created.
WAYS: dict[str, Callable[[int], np.ndarray]] = {
    "shared": lambda nbytes: ft.shared(nbytes, np.uint8),
    "pickled": lambda nbytes: np.empty(nbytes, np.uint8),
}

_partner: list[Connection] = []
_kept: dict[tuple[int, str], np.ndarray] = {}


def serve(connection: Connection) -> None:
    """Be the other process: reply to each array with its residency before anything is touched, and its last byte."""
    while True:
        array, look = connection.recv()
        found = ft.inspect(array) if look else None
        there = (found.cached, found.real) if found else (0, 0)
        connection.send((there, int(array[-1])))
        del array


def _connection() -> Connection:
    if not _partner:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
        process.start()
        _partner.append(here)
        atexit.register(process.terminate)
    return _partner[0]


def measure(nbytes: int, way: str) -> dict[str, float]:
    """Return the seconds until the other process's reply to the array arrives, the median of seven, and those without
    an array.
    """
    connection = _connection()
    if (nbytes, way) not in _kept:
        _kept.clear()
        array = WAYS[way](nbytes)
        array[:] = 1
        _kept[nbytes, way] = array
    array = _kept[nbytes, way]
    array[-1] = 7
    connection.send((array, way == "shared"))
    (cached, real), last = connection.recv()
    assert last == 7
    times: dict[int, list[float]] = {nbytes: [], 1: []}
    nothing = np.ones(1, np.uint8)
    for _ in range(7 if way == "shared" else 1):
        for what in (array, nothing):
            start = time.perf_counter()
            connection.send((what, False))
            connection.recv()
            times[what.size].append(time.perf_counter() - start)
    return {"seconds": middle(times[nbytes]), "empty": middle(times[1]), "cached": cached or 0, "real": real or 0}

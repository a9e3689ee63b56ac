"""Functions for workers, sent by name, and a way to ask a worker several things at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import firsttouch as ft
from tests.probe import wait_until

MIB = 1 << 20


@contextmanager
def cluster(workers: int = 1, **options: Any) -> Iterator[Any]:
    """A client of a cluster of its own, with two threads a worker and a fixed limit."""
    import dask.config
    from distributed import Client, LocalCluster

    given = {"threads_per_worker": 2, "memory_limit": "1 GiB", "dashboard_address": ":0", "silence_logs": 50} | options
    # So long after a worker was lost, Dask gives up its place where nobody has it at that moment: perhaps as another
    # test has killed the next worker.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    with patient, LocalCluster(n_workers=workers, **given) as local, Client(local) as client:
        yield client


def serves(_: object = None) -> str:
    """The allocator of an array made in this very thread."""
    return repr(ft.get_allocator(np.empty(1_000_000)))


def everywhere(client: Any) -> list[str]:
    """The allocator of arrays in tasks of each worker, and in its event loop's thread."""
    workers = list(client.run(os.getpid))  # who answers: a worker that was killed may still be listed
    tasks = [client.submit(serves, number, workers=[name], pure=False) for name in workers for number in range(4)]
    return [*client.gather(tasks), *client.run(serves).values()]


def held_up(block: np.ndarray, until: Path) -> np.ndarray:
    """The same block, once a file is there; Dask asks an empty one for its type."""
    assert not block.size or wait_until(until.exists)
    return block


def leave_idle(nbytes: int) -> int:
    """Uses that much once; what the pool holds of it."""
    np.ones(nbytes, np.uint8)
    return ft.stats().idle

"""Workers that are threads of the client's process, workers bound to a node, workers with a preload."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask's distributed is not installed")

import dask.config

import firsttouch as ft
from firsttouch.dask import ArrayMemory
from tests.dask.work import bindings, cluster, everywhere
from tests.handlers import swap


def test_threads_of_the_clients_process_share_its_allocator_until_they_close() -> None:
    ft.install("tracked()")
    # No limit: it is of the whole process, which ran other tests before.
    with cluster(2, processes=False, memory_limit=None) as client:
        client.register_plugin(ArrayMemory())
        assert {name[:5] for name in everywhere(client)} == {"pool("}
        assert repr(ft.get_allocator(np.empty(100_000))).startswith("pool(")
        for newer in ("tracked(pool())", "pool()"):
            client.register_plugin(ArrayMemory(newer))
            assert {name.split("(")[0] for name in everywhere(client)} == {newer.split("(")[0]}
        with pytest.raises(RuntimeError, match="this one is not the worker's own"):
            client.register_plugin(ArrayMemory(numa="auto"))
    assert repr(ft.get_allocator(np.empty(100_000))).startswith("tracked(")


def test_a_numpy_that_is_not_supported_is_an_error_with_the_workers_name() -> None:
    with cluster() as client:
        (address,) = client.scheduler_info()["workers"]
        client.run(stand_in_front)
        with pytest.raises(RuntimeError, match="NumPy's default memory handler is") as raised:
            client.register_plugin(ArrayMemory())
        assert address in str(raised.value)
        assert client.submit(np.ones, 100_000).result().sum() == 100_000


def stand_in_front() -> None:
    swap.kept = swap.copy(version=9)  # type: ignore[attr-defined]
    swap.swap(swap.kept)  # type: ignore[attr-defined]


def test_a_worker_is_bound_before_its_tasks_have_threads_else_when_it_restarts() -> None:
    processors = sorted(set(ft.placement.topology().nodes[0].processors) & os.sched_getaffinity(0))
    node = ft.placement.topology().nodes[0].number
    with cluster() as client:
        client.register_plugin(ArrayMemory(numa="auto"))
        assert client.submit(threads_are_bound, processors).result()
        assert client.submit(seats).result() == [f"@firsttouch.dask/node {node}/worker 0"]
        client.register_plugin(ArrayMemory(numa=[node]))  # bound already

    with cluster() as client:
        client.submit(int, 1).result()
        with pytest.raises(RuntimeError, match=r"client\.restart_workers\(\['tcp://"):
            client.register_plugin(ArrayMemory(numa=[node]))
        assert {name[:5] for name in everywhere(client)} == {"pool("}
        client.restart_workers(list(client.scheduler_info()["workers"]))
        assert client.submit(seats).result() == [f"@firsttouch.dask/node {node}/worker 0"]


def threads_are_bound(processors: list[int]) -> bool:
    policy = Path("/proc/thread-self/numa_maps").read_text().splitlines()[0].split()[1]
    return policy.startswith("prefer") and all(found == processors for found in bindings().values())


def seats() -> list[str]:
    """What this process holds of the seats on nodes."""
    from firsttouch.dask import binding

    return [] if binding._seat is None else [binding._seat.getsockname().decode().replace("\0", "@")]


def test_workers_sit_where_fewest_do() -> None:
    from firsttouch.dask import binding

    taken: list[Any] = [binding._sit([0, 3]) for _ in range(4)]
    assert [node for _, node in taken] == [0, 3, 0, 3]
    taken[2][0].close()
    again = binding._sit([0, 3])
    assert again[1] == 0
    for seat, _ in [*taken, again]:
        seat.close()


def test_a_preload_serves_from_the_start() -> None:
    settings = {"distributed.worker.preload": ["firsttouch.dask"], "firsttouch.limit": "500 MiB"}
    with dask.config.set(settings), cluster() as client:
        assert {name.startswith("limited(") for name in everywhere(client)} == {True}
        client.register_plugin(ArrayMemory())
        assert {name[:5] for name in everywhere(client)} == {"pool("}


def test_settings_that_mean_nothing_leave_a_worker_as_it_was() -> None:
    settings = {"distributed.worker.preload": ["firsttouch.dask"], "firsttouch.limti": "500 MiB"}
    with dask.config.set(settings), cluster() as client:
        assert set(everywhere(client)) == {"numpy_default()"}

"""Workers in processes and in threads: served, within a budget, giving back what they do not need."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask's distributed is not installed")
import dask.config

import firsttouch as ft
from firsttouch.dask import ArrayMemory
from tests.dask.work import MIB, cluster, everywhere, held_up, leave_idle
from tests.probe import wait_until

POOL = repr(ft.pool())


@pytest.fixture(name="client", scope="module")
def _client() -> Iterator[Any]:
    with cluster() as client:
        yield client


def test_workers_that_run_are_served_also_twice(client: Any) -> None:
    client.submit(int, 1).result()  # its threads run already
    for _ in range(2):
        client.register_plugin(ArrayMemory())
        assert set(everywhere(client)) == {POOL}


def test_workers_that_join_are_served_and_so_are_those_that_restart(client: Any) -> None:
    client.register_plugin(ArrayMemory())
    client.cluster.scale(2)
    client.wait_for_workers(2)
    assert len(everywhere(client)) == 10
    assert set(everywhere(client)) == {POOL}
    before = set(client.run(os.getpid).values())
    os.kill(min(before), signal.SIGKILL)

    def is_replaced() -> bool:
        now = set(client.run(os.getpid, on_error="ignore").values())
        return len(now) == 2 and len(now - before) == 1

    assert wait_until(is_replaced)
    assert set(everywhere(client)) == {POOL}
    client.cluster.scale(1)
    assert wait_until(lambda: len(client.scheduler_info()["workers"]) == 1)


def test_a_worker_killed_in_the_middle_loses_no_result(client: Any, tmp_path: Path) -> None:
    da = pytest.importorskip("dask.array")
    client.register_plugin(ArrayMemory())
    x = da.ones((4000, 4000), chunks=(500, 500))
    future = client.compute((x * 3 + x).map_blocks(held_up, dtype=float, until=tmp_path / "go").sum())
    assert wait_until(lambda: any(client.processing().values()))
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    (tmp_path / "go").touch()
    assert future.result() == 4.0 * 16_000_000


def test_trim_and_stats_are_about_what_serves(client: Any) -> None:
    client.register_plugin(ArrayMemory("pool(max_idle='1 GiB', decay=None)"))
    assert set(everywhere(client)) == {"pool(max_idle='1 GiB', decay=None)"}
    assert client.submit(leave_idle, 64 * MIB, pure=False).result() >= 64 * MIB
    (stats,) = client.run(ft.stats).values()
    assert stats.idle >= 64 * MIB
    assert sum(client.run(ft.trim).values()) >= 60 * MIB


def test_a_budget_fails_the_task_and_not_the_worker(client: Any) -> None:
    client.register_plugin(ArrayMemory("limited(pool(), '256 MiB')"))
    before = client.run(os.getpid)
    with pytest.raises(MemoryError):
        client.submit(np.ones, 300 * MIB, np.uint8).result()
    (reason,) = client.run(lambda: str(ft.last_failure())).values()
    assert "limited() allows 256 MiB" in reason
    assert client.submit(len, client.submit(np.ones, 200 * MIB, np.uint8)).result() == 200 * MIB
    assert client.run(os.getpid) == before
    client.register_plugin(ArrayMemory(limit="auto"))
    assert all(name.startswith("limited(") for name in everywhere(client))


def test_it_ends_with_its_registration(client: Any) -> None:
    client.register_plugin(ArrayMemory())
    client.unregister_worker_plugin("firsttouch")
    assert set(everywhere(client)) == {"numpy_default()"}


@pytest.mark.parametrize("before", [None, "pool(decay=7.0)"])
def test_threads_of_the_clients_process_share_its_allocator_until_they_close(before: str | None) -> None:
    if before:
        ft.install(before, arrays_only=True)
    arrays_only = ft.process.arrays_only()
    # No limit: it is of the whole process, which ran other tests before.
    with cluster(2, processes=False, memory_limit=None) as client:
        client.register_plugin(ArrayMemory())
        assert {name[:5] for name in everywhere(client)} == {"pool("}
        assert repr(ft.get_allocator(np.empty(100_000))).startswith("pool(")
        for newer in ("filled(pool())", "pool()"):
            client.register_plugin(ArrayMemory(newer))
            assert {name.split("(")[0] for name in everywhere(client)} == {newer.split("(")[0]}
    assert repr(ft.get_allocator(np.empty(100_000))) == (before or "numpy_default()")
    assert ft.process.arrays_only() == arrays_only
    ft.uninstall()


def test_a_preload_serves_from_the_start() -> None:
    with dask.config.set({"distributed.worker.preload": ["firsttouch.dask"]}), cluster() as client:
        assert {name[:5] for name in everywhere(client)} == {"pool("}
        client.register_plugin(ArrayMemory("filled(pool())"))
        assert {name[:7] for name in everywhere(client)} == {"filled("}

"""Idle memory is returned before Dask reads the figure on which spilling, pausing and killing are based."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask's distributed is not installed")

import dask.config

import firsttouch as ft
from firsttouch.dask import ArrayMemory
from tests.dask.work import MIB, cluster, leave_idle

KEEP = "pool(max_idle='10 GiB', decay=None)"


def ask(nbytes: int, dask_worker: Any) -> tuple[int, int, int]:
    """Idle bytes after so many were used; what Dask reads then, and what is idle after that; all in one turn."""
    ft._firsttouch.set_memory_bound(None)  # what the pool itself does between two looks is another test's
    idle = leave_idle(nbytes)
    return idle, dask_worker.monitor.get_process_memory(), ft.stats().idle


def test_below_the_threshold_idle_memory_stays_and_near_it_goes_first() -> None:
    with cluster() as client:
        client.register_plugin(ArrayMemory(KEEP))
        ((idle, _, left),) = client.run(ask, 200 * MIB).values()
        assert idle >= 200 * MIB
        assert left == idle
        ((idle, read, left),) = client.run(ask, 750 * MIB).values()
        assert idle >= 750 * MIB
        assert left < 16 * MIB
        assert read < 500 * MIB
        client.unregister_worker_plugin("firsttouch")
        assert not any("get_process_memory" in found for found in client.run(of_monitor).values())


def of_monitor(dask_worker: Any) -> list[str]:
    return list(vars(dask_worker.monitor))


def test_where_only_a_nanny_would_look() -> None:
    # Without a nanny, which would end it at the third of its limit that is left to it here; its statistics see it.
    settings = {"spill": False, "pause": False, "target": False, "terminate": 0.3, "monitor-interval": "20 ms"}
    found = {f"distributed.worker.memory.{key}": value for key, value in settings.items()}
    with dask.config.set(found), cluster(processes=False) as client:
        client.register_plugin(ArrayMemory(KEEP))
        ft._firsttouch.set_memory_bound(None)
        assert leave_idle(400 * MIB) >= 400 * MIB
        assert all(client.run(soon_gone).values())


async def soon_gone() -> bool:
    for _ in range(500):
        if ft.stats().idle < 16 * MIB:
            return True
        await asyncio.sleep(0.01)
    return False

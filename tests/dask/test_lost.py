"""A shared array whose worker ends before another has opened it is requested again, as after a broken connection."""

import pytest

pytest.importorskip("distributed", reason="Dask's distributed is not installed")

import firsttouch as ft
from tests.dask.work import cluster
from tests.shared import work


def test_no_result_is_lost() -> None:
    with cluster(workers=2) as client:
        first, second = client.scheduler_info()["workers"]
        for function in (work.made, work.made_within):  # a handle of its own, and one in a pickle
            made = client.submit(function, 1000, workers=[first], pure=False)
            client.submit(work.nothing, made, workers=[first], pure=False).result()
            client.run(work.lose_the_next, workers=[second])
            assert client.submit(work.total_of, made, workers=[second], pure=False).result(60) == 499_500
            assert client.run(work.came_through, workers=[second]) == {second: True}


def test_the_client_is_told() -> None:
    with cluster() as client:
        made = client.submit(work.made, 1000)
        client.submit(work.nothing, made).result()
        work.lose_the_next()
        with pytest.raises(ft.sharing.SharedArrayError, match="its process has ended"):
            made.result(60)
        assert made.result(60).sum() == 499_500

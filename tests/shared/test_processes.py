"""Shared arrays with every way in which Python starts processes and sends objects to them."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import firsttouch as ft
from tests.probe import wait_until
from tests.programs import run
from tests.shared import work
from tests.shared.work import memory_files

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def context(request: pytest.FixtureRequest) -> Any:
    return multiprocessing.get_context(request.param)


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Whatever was sent and let go is gone soon."""
    before = memory_files()
    yield
    assert wait_until(lambda: memory_files() <= before), work.links()


def test_a_pool_of_processes(context: Any) -> None:
    a = ft.shared((100, 100))
    a[...] = 3
    with context.Pool(2) as pool:
        assert pool.apply(work.write, (a, 42.0)) == ("ndarray", True, 3)
        assert a[0, 0] == 42
        assert pool.map(work.total, [a[1], a[2:4], a[:, 5]]) == [300, 600, 300]
        # Nobody here holds these: the pool forgets what it sent.
        assert pool.starmap(work.write, [(ft.shared(5), 1.0) for _ in range(8)]) == [("ndarray", True, 0)] * 8
        # And these come from who lets them go at once.
        assert [x.sum() for x in pool.map(work.made, [10, 20, 30])] == [45, 190, 435]
        handed = pool.apply(work.passed_on, (a,))
        handed[1, 1] = 7
        assert a[1, 1] == 7
        del handed


@pytest.mark.parametrize("before", [(), (work.Slow(),)], ids=["sent", "pickled meanwhile"])
def test_a_child_that_ends_as_soon_as_it_has_sent(context: Any, before: tuple[work.Slow, ...]) -> None:
    """It waits at its end until what it sent has arrived."""
    queue = context.Queue()
    child = context.Process(target=work.put, args=(queue, 1000, *before))
    child.start()
    *others, arrived = (work.take(queue) for _ in range(1 + len(before)))
    child.join(60)
    assert (child.exitcode, arrived.sum(), len(others)) == (0, 499_500, len(before))
    with ProcessPoolExecutor(1, mp_context=context) as executor:  # its maker has ended: who holds it hands it on
        assert executor.submit(work.total, ft.sharing.share(arrived)).result() == 499_500


def test_joblib() -> None:
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    a = ft.shared(10**6)  # more than the megabyte from which joblib puts arrays into files
    a[:] = 1
    with joblib.parallel_config("loky", n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(work.write)(a[i:], float(i)) for i in range(4))
        assert found == [("ndarray", True, 1.0)] * 4
        assert a[:5].tolist() == [0, 1, 2, 3, 1]
        (made,) = joblib.Parallel()([joblib.delayed(work.made)(1000)])
        assert made.sum() == 499_500
    with joblib.parallel_config("threading", n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(work.total)(a[i:]) for i in (10, 20)) == [10**6 - 10, 10**6 - 20]
    assert joblib.hash(a) == joblib.hash(a.copy())
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def test_a_cluster_of_dask_shares() -> None:
    pytest.importorskip("distributed", reason="needs distributed")
    run("""
        from distributed import Client, LocalCluster
        from tests.shared import work
        if __name__ == "__main__":
            with (
                LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster) as client,
            ):
                # here no array was shared since distributed was imported
                assert client.submit(work.made, 1000).result().sum() == 499_500
                a = ft.shared(10**5)
                client.submit(work.write, a, 5.0, pure=False).result()
                assert a[0] == 5  # by way of the scheduler, which opens what it passes on
                client.submit(work.write, client.scatter(a), 6.0, pure=False).result()
                assert a[0] == 6
    """)


def test_a_forked_child_has_the_same_memory() -> None:
    run("""
        import os, pickle
        a = ft.shared(1000)
        mine = pickle.dumps(a)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            a[0] = 5
            pickle.loads(mine)[1] = 6  # the parent's handle, on what was inherited
            os.write(write, pickle.dumps(a[2:]))
            os.read(read, 0)
            os._exit(0)
        got = os.read(read, 1 << 16)
        b = pickle.loads(got)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        b[0] = 7
        assert a[:4].tolist() == [5, 6, 7, 0]
    """)

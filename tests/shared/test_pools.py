"""A shared array that cannot be opened fails the task that uses it, but neither the pool nor other tasks."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch.sharing import Missing
from tests.shared import work

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

Ask = Callable[..., Any]


@pytest.fixture(params=["pool", "executor", "loky"])
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    context = multiprocessing.get_context("fork")
    if request.param == "pool":
        with context.Pool(1) as pool:
            yield lambda function, argument: pool.apply_async(function, (argument,)).get(60)
        return
    if request.param == "executor":
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            yield lambda function, argument: executor.submit(function, argument).result(60)
        return
    loky = pytest.importorskip("joblib.externals.loky", reason="needs joblib")
    executor = loky.get_reusable_executor(1)
    yield lambda function, argument: executor.submit(function, argument).result(60)
    executor.shutdown(wait=True)


def test_the_task_fails_and_the_pool_goes_on(ask: Ask) -> None:
    with pytest.raises(ft.sharing.SharedArrayError, match="has ended before it was opened here"):
        ask(work.total, work.Lost())
    with pytest.raises(Exception, match="has ended before it was opened here"):
        ask(work.itself, work.Lost())
    ask(work.nothing, work.Lost())
    came = ask(work.lost, None)
    assert "has ended" in repr(came)
    with pytest.raises(ft.sharing.SharedArrayError, match="has ended"):
        came.sum()
    assert ask(work.unpickled, pickle.dumps(work.Lost())) == "raised"
    assert ask(work.total, ft.sharing.share(np.ones(10))) == 10


USES: list[Callable[[Any], Any]] = [
    *(np.asarray, np.sum, np.sqrt, len, list, float, pickle.dumps, copy.copy, copy.deepcopy, memoryview, str),
    *(lambda a: a[0], lambda a: a + 1, lambda a: 1 + a, lambda a: np.ones(3) * a, lambda a: a.shape, lambda a: a == 1),
]


@pytest.mark.parametrize("use", USES)
def test_every_use_says_why(use: Callable[[Any], Any]) -> None:
    with pytest.raises(ft.sharing.SharedArrayError, match="gone"):
        use(Missing(ft.sharing.SharedArrayError("gone")))

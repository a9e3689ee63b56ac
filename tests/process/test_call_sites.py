"""The lines that made arrays, as `limited` and `tracked` record them."""

import gc
import weakref

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("expression", ["limited(pool(), '1 GiB')", "tracked(pool(), lines=True)"])
def test_code_that_has_run_is_not_kept(expression: str) -> None:
    code = compile("array = np.empty(1 << 20, np.uint8)", "<cell>", "exec")
    with ft.use(expression):
        exec(code, {"np": np})
    kept = weakref.ref(code)
    del code
    gc.collect()
    assert kept() is None


def test_a_line_that_is_compiled_again_is_the_same_line() -> None:
    arrays: list[np.ndarray] = []
    with ft.use(ft.limited(ft.pool(), 40 * MIB)):
        for _ in range(3):
            exec("arrays.append(np.empty(10 << 20, np.uint8))", {"arrays": arrays, "np": np})
        with pytest.raises(MemoryError):
            np.empty(20 * MIB, np.uint8)
    failure = ft.last_failure()
    assert failure is not None
    assert "30.0 MiB  <string>:1 (3 arrays, the largest has 10.0 MiB)" in failure.reason

"""PyArrow uses our arrays without a copy, at the alignment that its format recommends."""

from tests.neighbours.needs import needs
from tests.programs import ask, run

pytestmark = needs("pyarrow")

BEGIN = """
import numpy as np, firsttouch as ft
import json, pyarrow as pa
x = ft.aligned(64).empty(1000)
x[:] = np.arange(1000)
"""


def test_no_copies() -> None:
    found = ask(
        """
        buffer = pa.py_buffer(x)
        array = pa.array(x)
        built = pa.Array.from_buffers(pa.float64(), 1000, [None, buffer])
        tensor = pa.Tensor.from_numpy(x.reshape(10, 100))
        print(json.dumps([
            buffer.address == x.ctypes.data,
            buffer.address % 64,
            array.buffers()[1].address == x.ctypes.data,
            np.shares_memory(array.to_numpy(), x),
            np.shares_memory(built.to_numpy(), x),
            np.shares_memory(tensor.to_numpy(), x),
        ]))
        """,
        prologue=BEGIN,
    )
    assert found == [True, 0, True, True, True, True]


def test_memory_stays_while_arrow_uses_it() -> None:
    run(
        """
        import gc, pyarrow.compute
        array = pa.array(x)
        del x
        gc.collect()
        for _ in range(10):
            ft.aligned(64).zeros(1000)
        assert pyarrow.compute.sum(array).as_py() == 499_500
        """,
        prologue=BEGIN,
    )

"""PyArrow uses our arrays without a copy, at the alignment that its format recommends."""

from tests.neighbours.needs import needs
from tests.programs import run

pytestmark = needs("pyarrow")


def test_no_copies_and_memory_stays_while_arrow_uses_it() -> None:
    run(
        """
        import gc, pyarrow as pa, pyarrow.compute
        x = ft.aligned(64).empty(1000)
        x[:] = np.arange(1000)
        buffer = pa.py_buffer(x)
        array = pa.array(x)
        built = pa.Array.from_buffers(pa.float64(), 1000, [None, buffer])
        tensor = pa.Tensor.from_numpy(x.reshape(10, 100))
        assert buffer.address == array.buffers()[1].address == x.ctypes.data and buffer.address % 64 == 0
        for taken in (array, built, tensor):
            assert np.shares_memory(taken.to_numpy(), x)
        del x, buffer, built, tensor, taken
        gc.collect()
        for _ in range(10):
            ft.aligned(64).zeros(1000)
        assert pyarrow.compute.sum(array).as_py() == 499_500
        """
    )

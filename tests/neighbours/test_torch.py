"""PyTorch's from_numpy shares our memory in both directions."""

from tests.neighbours.needs import needs
from tests.programs import run

pytestmark = needs("torch")


def test_from_numpy_shares_memory() -> None:
    run(
        """
        import gc, torch
        x = ft.aligned(64).zeros((100, 100), np.float32)
        t = torch.from_numpy(x)
        assert t.data_ptr() == x.ctypes.data
        t += 1
        assert x.sum() == 10_000
        x[0] = 3
        assert t.sum().item() == 10_200
        assert torch.from_dlpack(x).data_ptr() == x.ctypes.data
        assert np.shares_memory(t.numpy(), x)
        del x
        gc.collect()
        ft.aligned(64).zeros((100, 100), np.float32)
        assert t.sum().item() == 10_200
        """
    )

"""JAX uses arrays at multiples of 64 bytes without a copy, and copies all others."""

from tests.neighbours.needs import needs
from tests.programs import ask

pytestmark = needs("jax")


def test_jax() -> None:
    aligned, skipping, installed, kept = ask(
        """
        import gc, json, os
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax, jax.numpy as jnp
        def copied(x):  # JAX's own word for where its data lies
            return [take(x).unsafe_buffer_pointer() != x.ctypes.data for take in (jax.device_put, jnp.from_dlpack)]
        aligned = ft.aligned(64)
        found = [[copied(aligned.zeros(n, np.float32)) for n in (1, 16, 1000, 10**6)]]
        raw = aligned.zeros(4096 + 64, np.uint8)
        found.append([copied(raw[skip : skip + 4096].view(np.float32)) for skip in range(0, 65, 8)])
        ft.install()
        arrays = [np.ones(size, np.float32) for size in (5000, 50_000, 500_000, 5_000_000) for _ in range(4)]
        found.append([copied(array) for array in arrays])
        x = aligned.empty(10**6, np.float32)
        x[:] = 7
        y = jax.device_put(x)
        del x
        gc.collect()
        for _ in range(10):
            aligned.zeros(10**6, np.float32)
        print(json.dumps([*found, [float(y.min()), float(y.max()), float((y + 1).sum())]]))
        """
    )
    no, yes = [False, False], [True, True]
    assert aligned == [no] * 4
    assert skipping == [no, *[yes] * 7, no]
    assert installed == [no] * 16, "all allocators align to 64 bytes: installed, they spare JAX its copies"
    assert kept == [7, 7, 8e6], "memory stays while JAX uses it"

"""JAX uses arrays at multiples of 64 bytes without a copy, and copies all others."""

from tests.neighbours.needs import needs
from tests.programs import ask

pytestmark = needs("jax")

#: JAX's own word for where its data lies.
BEGIN = """
import numpy as np, firsttouch as ft
import json, os
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp
aligned = ft.aligned(64)
taken = {
    "device_put": lambda x: jax.device_put(x),
    "dlpack": lambda x: jnp.from_dlpack(x),
}
def copied(x):
    return {name: take(x).unsafe_buffer_pointer() != x.ctypes.data for name, take in taken.items()}
"""


def test_aligned_arrays_are_taken_without_a_copy() -> None:
    found = ask(
        "print(json.dumps([copied(aligned.zeros(n, np.float32)) for n in (1, 16, 1000, 10**6)]))", prologue=BEGIN
    )
    assert found == [{"device_put": False, "dlpack": False}] * 4


def test_others_are_copied() -> None:
    found = ask(
        """
        raw = aligned.zeros(4096 + 64, np.uint8)
        print(json.dumps([copied(raw[skip : skip + 4096].view(np.float32)) for skip in range(0, 65, 8)]))
        """,
        prologue=BEGIN,
    )
    no, yes = {"device_put": False, "dlpack": False}, {"device_put": True, "dlpack": True}
    assert found == [no, *[yes] * 7, no]


def test_what_numpy_makes_is_luck_and_what_a_pool_makes_is_not() -> None:
    """All firsttouch's allocators align to 64 bytes: installed, they spare JAX its copies."""
    found = ask(
        """
        ft.install()
        arrays = [np.ones(size, np.float32) for size in (5000, 50_000, 500_000, 5_000_000) for _ in range(4)]
        print(json.dumps([copied(array) for array in arrays]))
        """,
        prologue=BEGIN,
    )
    assert found == [{"device_put": False, "dlpack": False}] * 16


def test_memory_stays_while_jax_uses_it() -> None:
    found = ask(
        """
        import gc
        x = aligned.empty(10**6, np.float32)
        x[:] = 7
        y = jax.device_put(x)
        del x
        gc.collect()
        for _ in range(10):
            aligned.zeros(10**6, np.float32)
        print(json.dumps([float(y.min()), float(y.max()), float((y + 1).sum())]))
        """,
        prologue=BEGIN,
    )
    assert found == [7, 7, 8e6]

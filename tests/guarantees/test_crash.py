"""Crash: see the page."""

import pytest

from tests.programs import run

pytestmark = pytest.mark.quick


def test_freeing_an_array_needs_no_memory() -> None:
    run("""
        import resource
        for text in ("pool(decay=None)", "mimalloc()", "jemalloc()", "guarded()", "filled(on_free=1)"):
            ft.install(text)
            arrays = [np.ones(20_000 + 4099 * n, np.uint8) for n in range(150)]
            before = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (probe.status("VmSize"), before[1]))
            while len(arrays) > 1:
                arrays.pop(len(arrays) * 7 % len(arrays) if len(arrays) % 2 else 0)
            arrays.clear()
            resource.setrlimit(resource.RLIMIT_AS, before)
            assert np.ones(1 << 20, np.uint8).all()
    """)

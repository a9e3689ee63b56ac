"""Other allocators, preloaded: they serve NumPy's small arrays and everything else, firsttouch serves large arrays."""

import pytest

from tests.preloading import PEERS, peer
from tests.trust.campaign import run


@pytest.mark.parametrize("name", PEERS)
def test_random_programs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", peer(name))
    for seed in (2, 4):  # of threads, and of all kinds
        assert run(seed, 60).failure is None

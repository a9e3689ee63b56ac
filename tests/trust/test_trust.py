"""A short share of the random tester: some seeds that are always the same."""

import sys

import pytest

from tests.trust.__main__ import failure


@pytest.mark.skipif(sys.platform != "linux", reason="the steps fork, and limit the address space")
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    assert failure(seed, 120) is None

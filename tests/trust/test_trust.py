"""A short share of the random tester: some seeds that are always the same."""

import sys

import pytest

from tests.trust.campaign import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the steps fork, and limit the address space")


#: By its seed a program has steps of all kinds, mostly of the raw domain, mostly threads, or mostly scopes.
PROGRAMS = [(0, 400), (1, 400), (4, 400), (5, 400), (2, 100), (6, 100), (3, 5000), (7, 5000)]


@pytest.mark.parametrize(("seed", "count"), PROGRAMS)
def test_random_programs(seed: int, count: int) -> None:
    assert run(seed, count).failure is None

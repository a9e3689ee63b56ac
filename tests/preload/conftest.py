"""One folder of compiled programs for all tests."""

import pytest

from tests.preload.starting import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("programs"))

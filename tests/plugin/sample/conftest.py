import pytest


def pytest_addoption(parser):
    parser.addoption("--twin", default="wrong", choices=["wrong", "right"])


@pytest.fixture
def twin(request):
    return request.config.getoption("--twin")

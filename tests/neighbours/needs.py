"""Tests with other people's packages run in processes of their own: their threads are not for tests that fork."""

import importlib.util

import pytest


def needs(package: str) -> pytest.MarkDecorator:
    """Skips where a package is not installed."""
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")

"""Runs tests with other packages in processes of their own, because their threads disturb tests that fork."""

import importlib.util

import pytest


def needs(package: str) -> pytest.MarkDecorator:
    """Skips where a package is not installed."""
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")

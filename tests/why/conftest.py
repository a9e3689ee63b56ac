"""Programs that `firsttouch why` runs."""

from tests.cli.conftest import firsttouch, python

__all__ = ["firsttouch", "python"]

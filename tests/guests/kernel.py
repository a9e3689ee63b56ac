"""A kernel for guests: Debian's own, unpacked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.guests.packages import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.guests.packages import Packages


def find(folder: Path, package: str, packages: Callable[[], Packages]) -> Path:
    """The kernel of a package, unpacked in `folder` now or before."""
    if not (found := _unpacked(folder)):
        packages().unpack(package, folder)
        found = _unpacked(folder)
    if not found:
        raise Unavailable(f"there is no kernel in {package}")
    return found


def module(folder: Path, name: str) -> Path | None:
    """A module of that kernel, if it was unpacked with it."""
    return next(folder.glob(f"lib/modules/*/kernel/**/{name}.ko"), None)


def _unpacked(folder: Path) -> Path | None:
    return max(folder.glob("boot/vmlinuz-*"), default=None)

"""The locked requirements: everything is pinned and hashed, and no requirement is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "requirements"
ASKED = sorted(FOLDER.glob("*.in"))
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def entries(lock: Path) -> list[str]:
    """One string for each pinned package, its hashes included."""
    return re.split(r"\n(?=\S)", lock.read_text().strip())


def test_each_wish_has_its_lock_and_each_lock_its_wish() -> None:
    assert [path.stem for path in ASKED] == sorted(path.stem for path in FOLDER.glob("*.txt"))


@pytest.mark.parametrize("wish", ASKED, ids=lambda path: path.stem)
def test_everything_is_pinned_and_hashed(wish: Path) -> None:
    for entry in entries(wish.with_suffix(".txt")):
        assert re.match(r"[a-z0-9._-]+==[0-9][^ ]* ", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("wish", ASKED, ids=lambda path: path.stem)
def test_what_is_asked_for_is_locked(wish: Path) -> None:
    lines = [line for line in wish.read_text().splitlines() if line and not line.startswith(("#", "-"))]
    asked = {match.group().lower() for line in lines if (match := NAME.match(line))}
    locked = {entry.split("==")[0] for entry in entries(wish.with_suffix(".txt"))}
    assert asked <= locked


def test_no_file_names_a_host() -> None:
    for path in FOLDER.iterdir():
        assert "://" not in path.read_text(), path

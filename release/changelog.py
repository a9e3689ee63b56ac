"""The changelog: its top section is what is released, or will be."""

import re
from datetime import date
from pathlib import Path
from typing import NamedTuple

UNRELEASED = "Unreleased"


class Section(NamedTuple):
    """A version's part of the changelog."""

    title: str
    body: str


def top(root: Path) -> Section:
    """Return the first section of the changelog, which may be empty."""
    _, _, rest = (root / "CHANGELOG.md").read_text("utf-8").partition("\n## ")
    title, _, body = rest.partition("\n## ")[0].partition("\n")
    return Section(title.strip(), body.strip())


def released_on(section: Section, version: str) -> date:
    """Return the date of a version's section; a section of anything else is a `ValueError`."""
    match = re.fullmatch(rf"{re.escape(version)} \((\d{{4}}-\d{{2}}-\d{{2}})\)", section.title)
    if match is None:
        raise ValueError(
            f'the top section of CHANGELOG.md is "{section.title}", not "{version} (YYYY-MM-DD)"; '
            f"`python -m release prepare {version}` writes that"
        )
    try:
        return date.fromisoformat(match[1])
    except ValueError as error:
        raise ValueError(f"cannot read the date of {version} in CHANGELOG.md: {error}") from None


def write_title(root: Path, version: str, day: date) -> None:
    """Give the unreleased section its version and date."""
    path = root / "CHANGELOG.md"
    if top(root).title != UNRELEASED:
        raise SystemExit(f'cannot prepare {version}: CHANGELOG.md has no section "{UNRELEASED}" at its top')
    path.write_text(path.read_text("utf-8").replace(f"## {UNRELEASED}", f"## {version} ({day})", 1), "utf-8")

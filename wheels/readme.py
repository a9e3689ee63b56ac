"""The readme as PyPI shows it, where no files lie beside it: its links name the repository."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def name_repository(tree: Path) -> bool:
    """Make the links of a tree's readme absolute; return False where Cargo.toml names no repository."""
    package = tomllib.loads((tree / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]
    if "repository" not in package:
        return False
    readme = tree / "README.md"
    readme.write_text(absolute(readme.read_text("utf-8"), package["repository"], f"v{package['version']}"), "utf-8")
    return True


def absolute(text: str, address: str, tag: str) -> str:
    """Return Markdown whose relative links lead to files at a tag, and those of pictures to the pictures themselves."""

    def link(found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}({address}/{'raw' if found[1] else 'blob'}/{tag}/{found[3]})"

    return re.sub(r"(!?)(\[[^\]]*\])\((?!\w+:|#)([^)]+)\)", link, text)

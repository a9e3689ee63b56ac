"""What speaks against a release: each reason is a sentence that says what would work."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from release import changelog, versions


def of_files(root: Path, version: str) -> Iterator[str]:
    """Say what is out of step in the files."""
    yield from versions.disagreements(root, version)
    yield from _derived(root)
    section = changelog.top(root)
    try:
        day = changelog.released_on(section, version)
    except ValueError as error:
        yield str(error)
    else:
        yield from _dates(root, day)
    if not section.body:
        yield f'the section "{section.title}" of CHANGELOG.md is empty; say what changed for users'
    yield from _repository(root)


def of_git(root: Path, version: str) -> Iterator[str]:
    """Say why git could not make the tag, or should not."""
    if git(root, "status", "--porcelain"):
        yield "the working tree has uncommitted changes; commit them or put them aside"
    if git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} exists; `python -m release prepare X.Y.Z` begins another version"


def git(root: Path, *arguments: str, text: str = "") -> str:
    """Return what git prints; where it fails, end with its own words."""
    done = subprocess.run(["git", "-C", root, *arguments], input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def _derived(root: Path) -> Iterator[str]:
    project = _toml(root / "pyproject.toml")["project"]
    if "version" in project or "version" not in project.get("dynamic", []):
        yield 'pyproject.toml states a version of its own; dynamic = ["version"] takes the crate\'s'
    for path in sorted(root.glob("crates/*/Cargo.toml")):
        if _toml(path)["package"].get("version") != {"workspace": True}:
            yield f"{path.relative_to(root)} states a version of its own; version.workspace = true derives it"
    major, minor, _ = versions.version_of(root).split(".")
    node = f"FIRSTTOUCH_{major}.{minor}" if major == "0" else f"FIRSTTOUCH_{major}"
    if node not in re.findall(r"^(\w+(?:\.\d+)?) \{$", (root / "crates/firsttouch-c/firsttouch.map").read_text(), re.M):
        yield f"crates/firsttouch-c/firsttouch.map has no version {node}, which the symbols of this interface need"


def _dates(root: Path, day: date) -> Iterator[str]:
    if day > date.today():
        yield f"CHANGELOG.md dates the version {day}, which is in the future"
    match = re.search(r"^date-released: (.*)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    if match is None or match[1] != str(day):
        yield f"CITATION.cff has {match[0] if match else 'no date-released'}; CHANGELOG.md says {day}"


def _repository(root: Path) -> Iterator[str]:
    address = _toml(root / "Cargo.toml")["workspace"]["package"].get("repository")
    if address is None:
        yield "Cargo.toml names no repository: crates.io and PyPI need repository = below [workspace.package]"
        return
    for crate in ("firsttouch", "firsttouch-trace"):
        path = Path("crates", crate, "Cargo.toml")
        if _toml(root / path)["package"].get("repository") != {"workspace": True}:
            yield f"{path} needs repository.workspace = true"
    if _toml(root / "pyproject.toml")["project"].get("urls", {}).get("Source") != address:
        yield f'pyproject.toml needs Source = "{address}" below [project.urls], as Cargo.toml has it'
    if f"\nrepository-code: {address}\n" not in (root / "CITATION.cff").read_text("utf-8"):
        yield f"CITATION.cff needs repository-code: {address}, as Cargo.toml has it"


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))

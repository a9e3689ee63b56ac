"""Every place that states the version. Cargo.toml decides; the others are compared with it, or set to it.

What a build derives by itself is not listed: pyproject.toml takes the version from the crate, the C library's makefile
its soname, and the files for pkg-config and CMake theirs from Cargo.toml.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NUMBER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class Place(NamedTuple):
    """Lines of a file that state the version, or a part of it, as the first group of a pattern."""

    path: str
    pattern: str
    #: What the group reads: ``{version}``, ``{major}``, ``{minor}``, ``{patch}``, or ``{interface}`` of the C library.
    form: str = "{version}"


SOURCE = Place("Cargo.toml", r'(?<=^\[workspace\.package\]\n)version = "(.*)"$')
_HEADER = "crates/firsttouch-c/include/firsttouch.h"
PLACES = (
    SOURCE,
    Place("Cargo.toml", r'^firsttouch(?:-\w+)? = \{ .*version = "=(.*?)"'),
    Place("Cargo.lock", r'^name = "firsttouch(?:-\w+)?"\nversion = "(.*)"$'),
    Place("CITATION.cff", r"^version: (.*)$"),
    Place("julia/FirstTouch/Project.toml", r'^version = "(.*)"$'),
    Place("julia/FirstTouch/src/library.jl", r'^const libfirsttouch = "libfirsttouch\.so\.(.*)"$', "{interface}"),
    Place(_HEADER, r"^#define FIRSTTOUCH_VERSION_MAJOR (\d+)$", "{major}"),
    Place(_HEADER, r"^#define FIRSTTOUCH_VERSION_MINOR (\d+)$", "{minor}"),
    Place(_HEADER, r"^#define FIRSTTOUCH_VERSION_PATCH (\d+)$", "{patch}"),
)


def version_of(root: Path) -> str:
    """Return the version that Cargo.toml states."""
    match = re.search(SOURCE.pattern, (root / SOURCE.path).read_text("utf-8"), re.MULTILINE)
    if match is None or not NUMBER.fullmatch(match[1]):
        raise SystemExit('cannot read the version: Cargo.toml needs version = "X.Y.Z" below [workspace.package]')
    return match[1]


def disagreements(root: Path, version: str) -> Iterator[str]:
    """Say which places state another version, or none."""
    for place in PLACES:
        wanted = _text(place, version)
        found = re.findall(place.pattern, (root / place.path).read_text("utf-8"), re.MULTILINE)
        if not found:
            yield f"{place.path} states no version: a line that matches {place.pattern} is missing"
        yield from (f"{place.path} says {one}, Cargo.toml {wanted}" for one in sorted(set(found) - {wanted}))


def write(root: Path, version: str) -> None:
    """Set every place to a version."""
    for place in PLACES:
        path, wanted = root / place.path, _text(place, version)
        text = path.read_text("utf-8")
        for match in reversed(list(re.finditer(place.pattern, text, re.MULTILINE))):
            text = text[: match.start(1)] + wanted + text[match.end(1) :]
        path.write_text(text, "utf-8")


def _text(place: Place, version: str) -> str:
    major, minor, patch = version.split(".")
    # Before 1.0 each minor version has an interface of its own.
    interface = f"0.{minor}" if major == "0" else major
    return place.form.format(version=version, major=major, minor=minor, patch=patch, interface=interface)

"""Rust imports go one way: no circles between the files of a crate, no upward arrows between its rooms.

Read from all paths that begin with ``crate::`` and from ``use super::...``; a room is a folder or file right below
``src``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.structure.graph import circles, upward

CRATES = Path(__file__).parents[2] / "crates"

#: The rooms of each crate, from the bottom: each may import those before it. ``lib`` re-exports what others hold.
ROOMS = {
    "firsttouch": (
        "lib", "reserve", "description", "stats", "layout", "size", "expression", "error", "os", "sync", "fault_ahead",
        "failure", "allocator", "reason", "numa", "pages", "residency", "vm", "heap", "shared", "sources", "arena",
        "scratch", "adaptors", "owners", "factory",
    ),
    "firsttouch-c": (
        "lib", "error", "options", "range", "allocator", "constructors", "block", "scratch", "placement", "residency",
        "statistics",
    ),
    "firsttouch-trace": (
        "lib", "format", "event", "reader", "survey", "pool_replay", "profile", "summary", "encoder", "recorder",
        "tests", "replay",
    ),
    "firsttouch-python": (
        "python", "numpy", "allocators", "custom", "handlers", "arrays", "scratch", "numba", "placement", "inspection",
        "sharing", "process", "tools", "lib",
    ),
    "firsttouch-preload": (
        "text", "pattern", "settings", "next", "forking", "inside", "wrong", "idle", "large", "report", "forks",
        "entry", "aligned", "table", "exit", "start", "lib",
    ),
}  # fmt: skip

#: Lines of the longest file.
LONGEST = 300


def modules(crate: str) -> dict[str, Path]:
    """Each file of a crate by its name below ``src``: ``heap/region``; ``heap`` is ``heap/mod.rs``."""
    source = CRATES / crate / "src"
    found = {}
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).with_suffix("").parts
        found["/".join(parts[:-1] if parts[-1] == "mod" else parts)] = path
    return found


def uses(path: Path) -> Iterator[list[str]]:
    """The paths that a file names: of ``use``, with braces taken apart, and those written out in the code."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
    use = re.compile(r"\buse\s+((?:crate|super)\b[^;]*);")
    for match in use.finditer(text):
        yield from expanded(match[1], [])
    for match in re.finditer(r"(?<!\bin )(?<![\w$])crate(?:::\w+)+", use.sub("", text)):
        yield match[0].split("::")


def expanded(tree: str, before: list[str]) -> Iterator[list[str]]:
    head, brace, rest = tree.partition("{")
    here = before + re.findall(r"\w+|\*", head.partition(" as ")[0])
    if not brace:
        yield here
        return
    depth, part = 0, ""
    for character in rest.rstrip().removesuffix("}") + ",":
        if character == "," and depth == 0:
            if part.strip():
                yield from expanded(part, here)
            part = ""
            continue
        depth += (character == "{") - (character == "}")
        part += character


def graph(crate: str) -> dict[str, set[str]]:
    files = modules(crate)
    found: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        for use in uses(path):
            place = [] if name == "lib" else name.split("/")
            if use[0] == "crate":
                place = []
            while use and use[0] in ("crate", "super"):
                place = place[:-1] if use[0] == "super" else place
                use = use[1:]
            place = [*place, *use]
            while place and "/".join(place) not in files:
                place.pop()  # the names of items
            found[name].add("/".join(place) or "lib")
        found[name].discard(name)
    return found


@pytest.mark.parametrize("crate", ROOMS)
def test_no_circles(crate: str) -> None:
    assert circles(graph(crate)) == []


@pytest.mark.parametrize("crate", ROOMS)
def test_no_upward_arrows_between_rooms(crate: str) -> None:
    assert upward(graph(crate), ROOMS[crate], "/") == set()


def test_every_crate_is_looked_at() -> None:
    assert {path.parent.name for path in CRATES.glob("*/src")} == set(ROOMS)


@pytest.mark.parametrize("crate", ROOMS)
def test_files_are_short(crate: str) -> None:
    long = {name for name, path in modules(crate).items() if len(path.read_text("utf-8").splitlines()) > LONGEST}
    assert long == set()


@pytest.mark.parametrize("crate", [name for name in sorted(ROOMS) if name != "firsttouch-python"])
def test_no_first_use_waits_for_another_thread(crate: str) -> None:
    """A child that is forked meanwhile would wait for ever. The Python module's are made with the GIL held."""
    waiting = re.compile(r"\b(?:Once|LazyLock)\b|\b[A-Z_]+\.get_or_init\b")
    code = ((path, re.sub(r"//[^\n]*", "", path.read_text("utf-8"))) for path in modules(crate).values())
    assert [path.name for path, text in code if waiting.search(text)] == []

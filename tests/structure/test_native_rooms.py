"""The rooms of the native module: files use only rooms below their own, and no file uses itself around a circle."""

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "crates" / "firsttouch-python" / "src"

#: From the bottom.
ROOMS = (
    "python",
    "numpy",
    "allocators",
    "custom",
    "handlers",
    "arrays",
    "scratch",
    "numba",
    "placement",
    "inspection",
    "sharing",
    "process",
    "tools",
    "lib",
)

pytestmark = pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources are not here")


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return "::".join(parts[:-1] if parts[-1] == "mod" else parts)


def graph() -> dict[str, set[str]]:
    """Each file's module, and the modules of the files it names."""
    texts = {name_of(path): path.read_text("utf-8") for path in SOURCES.rglob("*.rs")}

    def file_of(path: str) -> str:
        parts = path.split("::")
        while parts and "::".join(parts) not in texts:
            parts.pop()
        return "::".join(parts) or "lib"

    def named(text: str) -> set[str]:
        code = re.sub(r"//.*", "", text)
        paths = re.findall(r"\bcrate::((?:\w+::)*)(\w+|\{[^;]*\})", code)
        return {file_of(before + each) for before, last in paths for each in re.findall(r"\w+", last)}

    return {name: named(text) - {name} for name, text in texts.items()}


def test_no_circles() -> None:
    left = graph()
    while free := {name for name, uses in left.items() if not uses & set(left)}:
        left = {name: uses for name, uses in left.items() if name not in free}
    assert left == {}


def test_no_upward_arrows() -> None:
    def floor(name: str) -> int:
        return ROOMS.index(name.split("::")[0])

    assert {(name, used) for name, uses in graph().items() for used in uses if floor(used) > floor(name)} == set()


def test_paths_are_whole() -> None:
    """A path from ``crate`` shows which room it enters."""
    assert [path.name for path in SOURCES.rglob("*.rs") if re.search(r"^use super::", path.read_text(), re.M)] == []


def test_files_are_short() -> None:
    assert {path.name for path in SOURCES.rglob("*.rs") if len(path.read_text("utf-8").splitlines()) > 300} == set()

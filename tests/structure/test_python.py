"""Python imports go one way: no circles between files or rooms, and what programs import loads no tools."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "firsttouch"

#: The command line and the plugins, which `import firsttouch` must not load.
TOOLS = {"tools", "dask", "numba", "ipython", "pytest_plugin", "__main__"}

#: Imports within functions, on purpose: they load heavy packages for those who use them. (The file, what it imports.)
LAZY = {
    ("__init__", "ipython"),
    ("buffers", "numba"),
}


def _files() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


FILES = _files()


def _short(name: str) -> str:
    return name.partition(".")[2] or "__init__"


def _imports(name: str) -> Iterator[tuple[str, bool]]:
    """Each module of ours that a file imports, and whether it does so within a function."""

    def walk(node: ast.AST, within: bool) -> Iterator[tuple[str, bool]]:
        if isinstance(node, ast.Import):
            yield from ((each.name, within) for each in node.names if each.name in FILES)
        elif isinstance(node, ast.ImportFrom) and node.module in FILES:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                if each.name not in ("_firsttouch", "_allocators"):  # the native modules
                    yield inner if inner in FILES else node.module, within
        inside = within or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside)

    yield from walk(ast.parse(FILES[name].read_text("utf-8")), False)


IMPORTS = {(_short(name), _short(other), within) for name in FILES for other, within in _imports(name) if name != other}
ARROWS = {(name, other) for name, other, _ in IMPORTS} - LAZY


def _room(name: str) -> str:
    return name.partition(".")[0]


def _ordered(arrows: set[tuple[str, str]]) -> None:
    """Raise `CycleError`, which names the circle, where there is one."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for name, other in arrows:
        order.add(name, other)
    order.prepare()


def test_files_import_each_other_in_no_circle() -> None:
    _ordered(ARROWS)


def test_rooms_import_each_other_in_no_circle() -> None:
    _ordered({(_room(name), _room(other)) for name, other in ARROWS if _room(name) != _room(other)})


def test_what_programs_import_loads_no_tools_and_imports_nothing_late() -> None:
    offered = {(name, other, within) for name, other, within in IMPORTS if _room(name) not in TOOLS}
    assert {(name, other) for name, other, within in offered if within} - LAZY == set()
    assert {(name, other) for name, other, _ in offered if _room(other) in TOOLS} - LAZY == set()

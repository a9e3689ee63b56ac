"""Python imports go one way: no circles, no upward arrows between rooms, none of ours inside functions."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.structure.graph import circles, upward

PACKAGE = Path(__file__).parents[2] / "python" / "firsttouch"

#: The rooms of the package, from the bottom: each may import those before it. The native module is below them all.
ROOMS = (
    "custom",
    "_internal",
    "placement",
    "context",
    "allocators",
    "_constructing",
    "arrays",
    "process",
    "buffers",
    "inspection",
    "sharing",
    "profiling",
    "_registration",
    "_public",
    "__init__",
    "numba",
    "dask",
    "ipython",
    "asv",
    "pytest_plugin",
    "tools",
    "__main__",
)

#: What stands behind the command line and the plugins, where programs of users do not come by.
TOOLS = ("tools", "dask", "numba", "ipython", "pytest_plugin", "asv", "__main__")

#: Heavy neighbours, which are loaded for whoever asks for them: (the file that imports, what it imports).
LAZY = {
    ("firsttouch", "firsttouch._public"),  # the command line's own process, see there
    ("firsttouch", "firsttouch.ipython"),  # brings IPython
    ("firsttouch.buffers.compiled", "firsttouch.numba"),  # brings Numba
}


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(name: str) -> Iterator[tuple[str, bool]]:
    """Each module of ours that the module `name` imports, and whether it does so within a function."""

    def walk(node: ast.AST, within: bool) -> Iterator[tuple[str, bool]]:
        if isinstance(node, ast.Import):
            yield from ((each.name, within) for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                if inner == "firsttouch._firsttouch":  # the native module
                    continue
                yield inner if inner in MODULES else node.module, within
        inside = within or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside)

    yield from walk(ast.parse(MODULES[name].read_text("utf-8")), False)


def is_offered(name: str) -> bool:
    """Whether a module is part of what ``import firsttouch`` loads."""
    return name.split(".")[1:2] == [] or name.split(".")[1] not in TOOLS


def graph() -> dict[str, set[str]]:
    """Each module and those it imports, the package's name cut off: ``buffers.default``, ``__init__``."""

    def short(name: str) -> str:
        return name.partition(".")[2] or "__init__"

    return {
        short(name): {short(other) for other, _ in imports(name) if (name, other) not in LAZY} - {short(name)}
        for name in MODULES
    }


def test_no_circles() -> None:
    assert circles(graph()) == []


def test_no_upward_arrows_between_rooms() -> None:
    assert upward(graph(), ROOMS, ".") == set()


def test_nothing_of_ours_is_imported_within_a_function() -> None:
    late = {(name, other) for name in MODULES if is_offered(name) for other, within in imports(name) if within}
    assert late - LAZY == set()


def test_what_is_offered_does_not_stand_on_tools() -> None:
    offered = {(name, other) for name in MODULES if is_offered(name) for other, _ in imports(name)}
    assert {pair for pair in offered - LAZY if not is_offered(pair[1])} == set()


def test_the_native_module_imports_none_of_ours() -> None:
    sources = PACKAGE.parents[1] / "crates" / "firsttouch-python" / "src"
    lines = [
        f"{path.relative_to(sources)}: {line.strip()}"
        for path in sources.rglob("*.rs")
        for line in path.read_text("utf-8").splitlines()
        if 'import("firsttouch' in line
    ]
    assert lines == []

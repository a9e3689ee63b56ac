"""The README's code parses, and every name and argument of ours in it exists."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import firsttouch as ft
import firsttouch.asv

pytest.importorskip("distributed", reason="firsttouch.dask needs Dask's distributed")
pytest.importorskip("numba", reason="firsttouch.numba needs Numba")

import firsttouch.dask
import firsttouch.numba

TEXT = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def resolved(node: ast.expr) -> Any:
    """The object of ours that `ft.a.b` names; ``None`` for anything else."""
    if isinstance(node, ast.Name):
        return ft if node.id in ("ft", "firsttouch") else None
    if not isinstance(node, ast.Attribute):
        return None
    owner = resolved(node.value)
    return None if owner is None else getattr(owner, node.attr)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_code(block: str) -> None:
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Attribute):
            resolved(node)
        if isinstance(node, ast.Call) and (function := resolved(node.func)) is not None:
            given = {keyword.arg: object() for keyword in node.keywords if keyword.arg}
            inspect.signature(function).bind(*node.args, **given)


def test_names_in_the_text() -> None:
    names = re.findall(r"`(?:ft|firsttouch)((?:\.[A-Za-z_]+)+)", TEXT)
    assert len(names) > 20
    for name in names:
        found: Any = ft
        for part in name.strip(".").split("."):
            if name in (".allocator", ".numa", ".huge", ".limit", ".h", ".hpp", ".f"):  # settings of Dask, and files
                break
            found = getattr(found, part)

"""Every guarantee has a test of its name, and every test here is a guarantee."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "explanation" / "guarantees.md"

pytestmark = pytest.mark.quick


def named(sentence: str) -> str:
    return "test_" + re.sub(r"[^a-z0-9]+", "_", sentence.lower()).strip("_")


def sentences() -> Iterator[tuple[str, str]]:
    """The file and the name of the test of each sentence; a list is a section's."""
    section = ""
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            section = named(line.removeprefix("## ")) + ".py"
        elif line.startswith("- "):
            assert line.endswith("."), f"a guarantee is one sentence on one line: {line}"
            yield section, named(line.removeprefix("- "))


def defined() -> Iterator[tuple[str, str]]:
    for path in HERE.glob("test_*.py"):
        if path != Path(__file__):
            tree = ast.parse(path.read_text("utf-8"))
            names = (node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
            yield from ((path.name, name) for name in names if name.startswith("test_"))


def test_each_guarantee_has_a_test_and_each_test_is_a_guarantee() -> None:
    promised, tested = list(sentences()), list(defined())
    assert len(set(promised)) == len(promised) > 50
    assert sorted(tested) == sorted(promised)

"""The code of docstrings, of the README and of every page runs, or at least parses and names what exists."""

import ast
import doctest
import inspect
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import _allocators, _firsttouch
from firsttouch.tools.cli import completion

pytest.importorskip("distributed", reason="firsttouch.dask needs Dask's distributed")
pytest.importorskip("numba", reason="firsttouch.numba needs Numba")

import firsttouch.dask
import firsttouch.numba

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text("utf-8") for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
}
BLOCK = re.compile(r"^(?:```|~~~)(\w+)\n(.*?)^(?:```|~~~)$", re.MULTILINE | re.DOTALL)
PACKAGE = Path(ft.__file__).parent


def documented() -> dict[str, str]:
    """The docstrings with examples, by file and name; those that are made at run time, by name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                doc = ast.get_docstring(node) or ""
                if ">>> " in doc:
                    name = getattr(node, "name", "")
                    found[f"{path.relative_to(PACKAGE)}:{name}:{getattr(node, 'lineno', 1)}"] = doc
    made = vars(_firsttouch) | vars(_allocators) | {name: getattr(ft.arrays, name) for name in ft.arrays.__all__}
    docs = {name: inspect.getdoc(made[name]) or "" for name in made if not name.startswith("_")}
    return found | {name: doc for name, doc in docs.items() if ">>> " in doc}


DOCSTRINGS = documented()


def assert_runs(name: str, text: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {"np": np, "ft": ft}, name, name, 0)
    assert test.examples
    out: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=out.append)
    if ft.is_installed():
        ft.uninstall()
    assert not out, "".join(out)


@pytest.mark.parametrize("name", sorted(DOCSTRINGS))
def test_examples_of_docstrings_run(name: str) -> None:
    assert_runs(name, DOCSTRINGS[name])


@pytest.mark.parametrize("page", sorted(page for page, text in PAGES.items() if "```pycon" in text))
def test_sessions_of_pages_run(page: str) -> None:
    assert_runs(page, "\n".join(code for language, code in BLOCK.findall(PAGES[page]) if language == "pycon"))


def resolved(node: ast.expr) -> Any:
    """The object of ours that `ft.a.b` names; ``None`` for anything else."""
    if isinstance(node, ast.Name):
        return ft if node.id in ("ft", "firsttouch") else None
    if not isinstance(node, ast.Attribute):
        return None
    owner = resolved(node.value)
    return None if owner is None else getattr(owner, node.attr)


@pytest.mark.parametrize("page", sorted(page for page, text in PAGES.items() if "```python" in text))
def test_code_of_pages_parses_and_names_what_exists(page: str) -> None:
    for language, code in BLOCK.findall(PAGES[page]):
        for node in ast.walk(ast.parse(code)) if language == "python" else ():
            if isinstance(node, ast.Attribute):
                resolved(node)
            if isinstance(node, ast.Call) and (function := resolved(node.func)) is not None:
                given = {keyword.arg: object() for keyword in node.keywords if keyword.arg}
                inspect.signature(function).bind(*node.args, **given)


def test_pictures_of_pages_can_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runpy.run_path(str(ROOT / "docs" / "pictures.py"))["draw"](tmp_path)
    assert {page.name for page in tmp_path.iterdir()} == {"first-touch.svg", "zero-page.svg"}


#: What a user is told to type: behind a prompt, or in backticks.
TYPED = re.compile(r"(?:^\$ |`)firsttouch\s+(-{0,2}[a-z][a-z-]*)([^`\n]*)", re.MULTILINE)
TELLING = {
    str(page.relative_to(ROOT)): page.read_text("utf-8")
    for page in [*ROOT.glob("*.md"), *ROOT.glob(".github/ISSUE_TEMPLATE/*"), *ROOT.glob("docs/**/*.md")]
    if page.name != "CHANGELOG.md" and page.parent.name != "notes"
}


def test_commands_that_pages_name_exist_with_their_options() -> None:
    known = {
        command: {name: action.nargs != 0 for action in parser._actions for name in action.option_strings}
        for command, parser in completion.parsers().items()
    } | {"--version": {}, "--help": {}}
    wrong, seen = [], set()
    for page, text in TELLING.items():
        for command, rest in TYPED.findall(text):
            seen.add(command)
            words = iter(shlex.split(rest, comments=True))
            for word in words if command in known else ():
                if not word.startswith("-") or word in ("-m", "-c", "--"):
                    break
                if word not in known[command]:
                    wrong.append((page, command, word))
                elif known[command][word]:
                    next(words, None)
            if command not in known:
                wrong.append((page, command, ""))
    assert wrong == []
    assert seen == {*known} - {"--help"}

"""The code of the README and of every page runs, or at least parses and names what exists."""

import ast
import doctest
import functools
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
import firsttouch.asv
from firsttouch.tools.cli.main import COMMANDS

pytest.importorskip("distributed", reason="firsttouch.dask needs Dask's distributed")
pytest.importorskip("numba", reason="firsttouch.numba needs Numba")

import firsttouch.dask
import firsttouch.numba

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
TEXTS = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in PAGES}
BLOCK = re.compile(r"^(?:```|~~~)(\w+)\n(.*?)^(?:```|~~~)$", re.MULTILINE | re.DOTALL)
# Settings of Dask, suffixes of files, and an option of pytest.
NOT_OURS = {".allocator", ".numa", ".huge", ".limit", ".h", ".hpp", ".f", ".so"}


def blocks(language: str) -> list[Any]:
    return [
        pytest.param(found[1], id=f"{page}-{number}")
        for page, text in TEXTS.items()
        for number, found in enumerate(BLOCK.findall(text))
        if found[0] == language
    ]


def resolved(node: ast.expr) -> Any:
    """The object of ours that `ft.a.b` names; ``None`` for anything else."""
    if isinstance(node, ast.Name):
        return ft if node.id in ("ft", "firsttouch") else None
    if not isinstance(node, ast.Attribute):
        return None
    owner = resolved(node.value)
    return None if owner is None else getattr(owner, node.attr)


@pytest.mark.parametrize("block", blocks("python"))
def test_code_parses_and_its_names_exist(block: str) -> None:
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Attribute):
            resolved(node)
        if isinstance(node, ast.Call) and (function := resolved(node.func)) is not None:
            given = {keyword.arg: object() for keyword in node.keywords if keyword.arg}
            inspect.signature(function).bind(*node.args, **given)


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if "```pycon" in text])
def test_sessions_run(page: str) -> None:
    sessions = "\n".join(code for language, code in BLOCK.findall(TEXTS[page]) if language == "pycon")
    test = doctest.DocTestParser().get_doctest(sessions, {"np": np, "ft": ft}, page, page, 0)
    assert test.examples
    out: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test, out=out.append)
    ft.uninstall()
    assert not out, "".join(out)


@pytest.mark.parametrize("page", TEXTS)
def test_names_in_the_text_exist(page: str) -> None:
    for name in re.findall(r"`~?(?:ft|firsttouch)((?:\.[A-Za-z_]+)+)[`(]", TEXTS[page]):
        found: Any = ft
        for part in name.strip(".").split(".") if name not in NOT_OURS else ():
            found = getattr(found, part)


@functools.cache
def options(command: str) -> set[str]:
    words = [sys.executable, "-m", "firsttouch", command, "--help"]
    help_ = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?<!\S)--?\w[\w-]*", help_.partition("\noptions:")[2].partition("\nfor example")[0]))


@pytest.mark.parametrize("page", TEXTS)
def test_options_in_the_text_exist(page: str) -> None:
    for command, words in re.findall(rf"firsttouch ({'|'.join(COMMANDS)})((?: [^\s`]+)*)", TEXTS[page]):
        own = re.split(r" (?:-[mc]|--|#|\S*\.(?:py|ft)|\./\S*)(?= |$)", words)[0]
        assert set(re.findall(r" (-+\w[\w-]*)", own)) - options(command) == set(), f"{command}{words}"


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", TEXTS["README.md"])
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []

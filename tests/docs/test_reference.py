"""The reference has every public name, every command and every environment variable."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsttouch.tools.cli.main import COMMANDS
from tests.docs.public import PUBLIC

pytest.importorskip("distributed", reason="firsttouch.dask needs Dask's distributed")
pytest.importorskip("numba", reason="firsttouch.numba needs Numba")

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"


def listed() -> Iterator[str]:
    """The names in the tables of the reference."""
    for page in REFERENCE.glob("*.rst"):
        module = ""
        for line in page.read_text("utf-8").splitlines():
            if found := re.match(r"\.\. currentmodule:: (.*)", line):
                module = found[1]
            elif found := re.match(r"   (\w+)$", line):
                yield f"{module}.{found[1]}"


def test_every_public_name_is_listed_once() -> None:
    names = [name.rpartition(".")[2] for name in listed()]  # some stand in two modules
    assert sorted(names) == sorted({each.name.rpartition(".")[2] for each in PUBLIC.values() if each.owner is None})


def test_every_command_is_there() -> None:
    page = (REFERENCE / "commands.rst").read_text("utf-8")
    assert set(re.findall(r"command-output:: firsttouch (\w+) --help", page)) == set(COMMANDS)


def test_every_environment_variable_is_there() -> None:
    page = (REFERENCE / "environment.md").read_text("utf-8")
    sources = [
        *ROOT.glob("python/**/*.py"),
        *ROOT.glob("crates/*/src/**/*.rs"),
        *ROOT.glob("julia/FirstTouch/src/*.jl"),
    ]
    read = {name for source in sources for name in re.findall(r"\"(FIRSTTOUCH_[A-Z]+)=?\"", source.read_text("utf-8"))}
    assert {"FIRSTTOUCH_RUN", "FIRSTTOUCH_PRELOAD", "FIRSTTOUCH_LIBRARY"} <= read
    assert {name for name in read if f"`{name}`" not in page} == set()


def test_every_setting_of_the_preloaded_library_is_there_with_its_default() -> None:
    page = (REFERENCE / "environment.md").read_text("utf-8").partition("## FIRSTTOUCH_PRELOAD")[2]
    rows = re.findall(r"^\| (`\w+=.*?) \| .* \| (.*) \|$", page, re.MULTILINE)
    defaults = {re.findall(r"\w+", names)[0]: default for names, default in rows}
    source = (ROOT / "crates/firsttouch-preload/src/settings.rs").read_text("utf-8")
    understood = {
        *re.findall(r'^ +"(\w+)" (?:if .*)?=>', source, re.MULTILINE),
        *re.findall(r'strip_prefix\(b"(\w+)="\)', source),
    }
    assert set(defaults) == understood
    numbers = re.findall(r"(threshold|thread): (?:Thread::After\()?(\d+) << (\d+)", source)
    assert {name: int(defaults[name]) for name, *_ in numbers} == {name: int(n) << int(by) for name, n, by in numbers}
    assert len(numbers) == 2

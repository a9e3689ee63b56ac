"""Every public docstring is numpydoc: it has the sections that its object needs, and its examples run."""

import dataclasses
import doctest
import inspect
import re
from types import GetSetDescriptorType

import numpy as np
import pytest

import firsttouch as ft
from tests.docs.public import PUBLIC, STUB_DOCS, STUB_RETURNS, Documented, is_native, parameters_of

SECTIONS = (
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
)
#: Made by firsttouch and not by users: what makes them has the examples.
RESULTS = {"Buffer", "Collapsed", "EscapeError", "EscapeWarning", "Failure", "Inspection", "Mark", "Measured"}
RESULTS |= {"Migrated", "Node", "NotBackedWarning", "PageMap", "PageSource", "PageState", "Receipt", "ReceiptSum"}
RESULTS |= {"Scope", "SharedArrayError", "Stats", "Topology", "Touched", "UnsupportedError"}
#: Documented by NumPy from 2.4 on, whose signature has it then.
LATER = {"ndmax"}


def sections(doc: str) -> dict[str, str]:
    """The sections by their titles; what stands before the first has none."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", doc, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def listed(section: str) -> list[str]:
    """The names that a section like Parameters describes."""
    entries = [line for line in section.splitlines() if line and not line.startswith(" ")]
    names = [name for line in entries for name in line.partition(" : ")[0].split(", ")]
    return [name.lstrip("*") for name in names]


def is_property(thing: object) -> bool:
    return isinstance(thing, (property, GetSetDescriptorType))


def returned(each: Documented) -> str:
    """What its annotation says that it returns, in the stub for native functions."""
    if is_native(each.thing):
        return STUB_RETURNS[each.native_name]
    function = each.thing if hasattr(each.thing, "__annotations__") else type(each.thing).__call__
    return str(function.__annotations__["return"])


EVERY = pytest.mark.parametrize("each", PUBLIC.values(), ids=PUBLIC)


@EVERY
def test_the_first_line_is_a_summary(each: Documented) -> None:
    first, _, rest = each.doc.partition("\n")
    assert first.endswith("."), f"{each.name}: {each.doc!r}"
    assert not rest or rest.startswith("\n"), f"{each.name}: a blank line has to follow the summary"


@EVERY
def test_sections_are_numpydoc_s_and_in_its_order(each: Documented) -> None:
    titles = list(sections(each.doc))[1:]
    assert titles == sorted(titles, key=SECTIONS.index)


@EVERY
def test_parameters_are_those_of_the_signature(each: Documented) -> None:
    taken = parameters_of(each.thing)
    if taken is None or "Refer to :func:" in each.doc:
        return
    found = sections(each.doc)
    if dataclasses.is_dataclass(each.thing) and "Parameters" not in found:  # a result; its fields have docstrings
        return
    if each.name.rpartition(".")[2] in RESULTS:
        return
    described = listed(found.get("Parameters", ""))
    assert sorted(set(described) - LATER) == sorted(set(taken) - LATER)


@EVERY
def test_what_returns_says_what(each: Documented) -> None:
    if is_property(each.thing) or isinstance(each.thing, type) or "Refer to :func:" in each.doc:
        return
    found = sections(each.doc)
    returns = returned(each)
    assert ("Returns" in found) == (returns != "None"), returns


@EVERY
def test_functions_and_classes_have_examples(each: Documented) -> None:
    name = each.name.rpartition(".")[2]
    if each.owner is not None:
        return
    found = sections(each.doc)
    assert ("Examples" in found) != (name in RESULTS)
    assert "See Also" in found or "Examples" in found


@pytest.mark.parametrize("name", [name for name, each in PUBLIC.items() if ">>>" in each.doc])
def test_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name.endswith("plot_pagemap"):
        pytest.importorskip("matplotlib").use("agg")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST
    test = doctest.DocTestParser().get_doctest(PUBLIC[name].doc, {"ft": ft, "np": np}, name, None, None)
    try:
        result = doctest.DocTestRunner(optionflags=flags).run(test)
    finally:
        ft.uninstall()
    assert result.attempted > 0
    assert result.failed == 0, capsys.readouterr().out


def test_native_objects_are_documented_in_the_stub() -> None:
    native = [each for each in PUBLIC.values() if is_native(each.thing)]
    assert {"firsttouch.scratch", "firsttouch.zeros"} <= {each.name for each in native}
    assert all(each.doc for each in native)
    assert STUB_DOCS["zeros"] == inspect.cleandoc(ft.arrays.zeros.__doc__ or "")
    assert STUB_DOCS["empty"] == inspect.cleandoc(ft.arrays.empty.__doc__ or "")


def test_no_public_docstring_is_written_as_if_translated() -> None:
    """Words that the project has given up (see CONTRIBUTING) do not come back."""
    given_up = re.compile(r"could not be had|can't|one's own|somebody|whoever|no more\b|Living|lives on|is none\b")
    assert {each.name: found[0] for each in PUBLIC.values() if (found := given_up.search(each.doc))} == {}

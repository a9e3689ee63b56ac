"""The functions that are made from the declaration of the allocators: signatures, docstrings, the stub."""

import inspect

import pytest

import firsttouch as ft
from firsttouch import _allocators, _firsttouch
from tests.expressions import stub

pytestmark = pytest.mark.quick

ROWS = {row[0]: row for row in _firsttouch.declared()}


def test_the_stub_is_what_the_declaration_says() -> None:
    assert stub.STUB.read_text("utf-8") == stub.text(), "python -m tests.expressions.stub writes it"


@pytest.mark.parametrize("name", ROWS)
def test_functions_are_documented_and_have_signatures(name: str) -> None:
    function = getattr(ft.allocators, name)
    assert function is getattr(_allocators, name) is getattr(ft, name)
    _, is_adaptor, summary, signature, _ = ROWS[name]
    assert str(inspect.signature(function)) == signature
    assert (function.__name__, function.__module__) == (name, "firsttouch")
    doc = inspect.getdoc(function) or ""
    assert doc.startswith(f"Return {summary}\n")
    assert is_adaptor == ("\nupstream : AllocatorLike" in doc)
    assert all(f"\n{option} : " in doc for option in inspect.signature(function).parameters)
    assert all(len(line) <= 120 for line in doc.splitlines())

"""The public objects and their docstrings; those of native objects are read from the stub. No test of its own."""

import ast
import contextlib
import enum
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import GetSetDescriptorType, ModuleType
from typing import Any, NamedTuple

import firsttouch as ft
from firsttouch import _firsttouch, _public, asv

_STUB = Path(_firsttouch.__file__).with_name("_firsttouch.pyi")


#: What is public where the package that it plugs into is installed.
_NEIGHBOURS: list[tuple[ModuleType, str]] = [(asv, "track")]
with contextlib.suppress(ImportError):
    import firsttouch.dask

    _NEIGHBOURS += [(firsttouch.dask, name) for name in firsttouch.dask.__all__]
with contextlib.suppress(ImportError):
    import firsttouch.numba

    _NEIGHBOURS += [(firsttouch.numba, "ThreadBuffers")]


class Documented(NamedTuple):
    """A public object, as users find it."""

    name: str
    thing: Any
    doc: str
    owner: type | None
    native_name: str
    """In the stub, if it is native."""


def _definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node.body, f"{node.name}.")


_STUBS = dict(_definitions(ast.parse(_STUB.read_text("utf-8")).body))
STUB_DOCS = {name: ast.get_docstring(node) or "" for name, node in _STUBS.items()}
STUB_RETURNS = {
    name: ast.unparse(node.returns or ast.Constant(None))
    for name, node in _STUBS.items()
    if isinstance(node, ast.FunctionDef)
}


def is_native(thing: object) -> bool:
    if isinstance(thing, type):
        return vars(_firsttouch).get(thing.__name__) is thing
    return inspect.isbuiltin(thing) or inspect.ismethoddescriptor(thing) or isinstance(thing, GetSetDescriptorType)


def doc_of(thing: object, native_name: str) -> str:
    """The docstring as it is written for `thing`: none that is inherited."""
    if is_native(thing):
        return STUB_DOCS.get(native_name, "")
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "")


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(kind).items():
        if name.startswith("_") or (issubclass(kind, tuple) and name in kind._fields):  # type: ignore[attr-defined]
            continue
        if callable(member) or isinstance(member, (property, GetSetDescriptorType)):
            yield name, member


def _objects() -> Iterator[Documented]:
    seen: set[int] = set()
    modules: list[ModuleType] = [ft, *_public.MODULES]
    listed = [(module, name) for module in modules for name in module.__all__]
    for module, name in [*listed, *((ft, name) for name in _public.UNSTARRED), *_NEIGHBOURS]:
        thing = getattr(module, name)
        if id(thing) in seen or not (callable(thing) or isinstance(thing, type)):
            continue
        if not isinstance(thing, type) and not hasattr(thing, "__name__"):  # a type alias
            continue
        seen.add(id(thing))
        full = f"{module.__name__}.{name}"
        yield Documented(full, thing, doc_of(thing, name), None, name)
        members_of = thing if isinstance(thing, type) else type(thing) if full.endswith(".numa") else None
        if members_of is None or issubclass(members_of, enum.Enum):
            continue
        for member_name, member in _members(members_of):
            native_name = f"{members_of.__name__}.{member_name}"
            yield Documented(f"{full}.{member_name}", member, doc_of(member, native_name), members_of, native_name)


PUBLIC: dict[str, Documented] = {each.name: each for each in sorted(_objects(), key=lambda each: each.name)}


def parameters_of(thing: Any) -> list[str] | None:
    """The names of what it is called with; ``None`` where it is not called by users."""
    if isinstance(thing, type) and (
        issubclass(thing, (BaseException, tuple, enum.Enum)) or getattr(thing, "_is_protocol", False)
    ):
        return None
    if isinstance(thing, (property, GetSetDescriptorType)):
        return None
    target: Callable[..., Any] = thing
    return [name for name in inspect.signature(target).parameters if name != "self"]

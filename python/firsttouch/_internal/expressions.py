"""Allocators as text: the expression that makes one in Python, parsed and never evaluated.

``pool(pages(huge="thp"))``, ``limited(pool(), "4 GiB")``; a bare ``mimalloc`` is ``mimalloc()``; ``ft.`` or
``firsttouch.`` may stand before a name. Arguments are numbers, strings, ``None``, ``True``, ``False``, allocators, and
tuples of these.
"""

import ast
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from firsttouch._internal.suggestions import nearest

T = TypeVar("T")

_PACKAGES = ("ft", "firsttouch")
_ARGUMENTS = "an argument is a number, a string, None, True, False or an allocator"


def parse(text: str, factories: Mapping[str, Callable[..., T]]) -> T:
    """What ``text`` makes, by the ``factories`` of these names.

    Raises :exc:`ValueError` that shows the text and the place where it isn't an expression or names what doesn't
    exist, and :exc:`TypeError` or :exc:`ValueError` where a factory does not take what it is given.
    """
    return _Reader(text.strip(), factories).read()


class _Reader(Generic[T]):
    """One text on its way to an allocator."""

    def __init__(self, text: str, factories: Mapping[str, Callable[..., T]]) -> None:
        self._text, self._factories = text, factories

    def read(self) -> T:
        if not self._text:
            raise ValueError(f"an empty text is no allocator: {self._known()}")
        try:
            return self._allocator(self._tree())
        except RecursionError:
            raise ValueError(f"{self._text!r:.80} is nested too deeply") from None

    def _tree(self) -> ast.expr:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python's compiler, about code that nobody will run
                return ast.parse(self._text, mode="eval").body
        except SyntaxError as error:
            at = None if error.offset is None or error.offset < 1 else (error.lineno or 1, error.offset - 1)
            raise self._wrong(error.msg, at) from None
        except (ValueError, MemoryError) as error:  # null bytes, lone surrogates; brackets beyond the parser's stack
            raise self._wrong(str(error) or "it is nested too deeply", None) from None

    def _allocator(self, node: ast.expr) -> T:
        if isinstance(node, ast.Call):
            name, call = self._name(node.func), node
            arguments = [self._value(value) for value in call.args]
            named: dict[str, object] = {}
            for keyword in call.keywords:
                if keyword.arg is None:
                    raise self._wrong("arguments are written out, not unpacked with **", self._place(keyword.value))
                named[keyword.arg] = self._value(keyword.value)
            return self._make(name, arguments, named)
        return self._make(self._name(node), [], {})

    def _name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _PACKAGES:
            name = node.attr
        elif isinstance(node, ast.Name):
            name = node.id
        else:
            raise self._wrong("here an allocator's name is expected", self._place(node))
        if name not in self._factories:
            raise ValueError(
                f"no allocator {name!r}{nearest(name, self._factories)} in {self._shown()}: {self._known()}"
            )
        return name

    def _value(self, node: ast.expr) -> object:
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str()):
                return node.value
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as number)) if (
                not isinstance(number, bool)
            ):
                return -number if isinstance(node.op, ast.USub) else number
            case ast.Call() | ast.Name() | ast.Attribute():
                return self._allocator(node)
            case ast.Tuple(elts=[*_]):
                return tuple(self._value(value) for value in node.elts)
            case ast.BinOp():
                raise self._wrong(
                    'nothing is computed here: write the number, or a size like "4 GiB"', self._place(node)
                )
            case ast.Starred():
                raise self._wrong("arguments are written out, not unpacked with *", self._place(node))
        raise self._wrong(_ARGUMENTS, self._place(node))

    def _make(self, name: str, arguments: list[object], named: dict[str, object]) -> T:
        factory = self._factories[name]
        takes = inspect.signature(factory)
        for word in named:
            if word not in takes.parameters:
                near = nearest(word, takes.parameters)
                raise TypeError(f"{name}() takes no {word}{near}: it takes {_described(takes)} (in {self._shown()})")
        try:
            takes.bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}; it takes {_described(takes)} (in {self._shown()})") from None
        return factory(*arguments, **named)

    def _place(self, node: ast.expr) -> tuple[int, int]:
        """Line and column in characters; the tree counts bytes of UTF-8."""
        line = self._text.splitlines()[node.lineno - 1].encode()
        return node.lineno, len(line[: node.col_offset].decode(errors="replace"))

    def _known(self) -> str:
        return f"there are {', '.join(sorted(self._factories, key=str.lower))}"

    def _shown(self) -> str:
        return repr(self._text if len(self._text) <= 200 else f"{self._text[:200]}...")

    def _wrong(self, why: str, place: tuple[int, int] | None) -> ValueError:
        where = ""
        if place is not None:
            line, column = place
            lines = self._text.splitlines() or [""]
            rest = lines[min(line, len(lines)) - 1][column:]
            where = f", at character {column + 1}" + (f" of line {line}" if len(lines) > 1 else "")
            where += f", before {rest!r:.40}" if rest else ", its end"
        return ValueError(f"{self._shown()} is no allocator: {why}{where}")


def _described(takes: inspect.Signature) -> str:
    return ", ".join(str(one).partition(":")[0].partition("=")[0] for one in takes.parameters.values()) or "nothing"

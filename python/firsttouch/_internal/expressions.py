"""Allocator expressions: what their names mean in Python.

The core parses them (see ``crates/firsttouch/src/expression``): ``pool(pages(huge="thp"))``,
``limited(pool(), "4 GiB")``; a bare ``mimalloc`` is ``mimalloc()``.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

from firsttouch._firsttouch import did_you_mean, evaluate_expression

T = TypeVar("T")


def parse(text: str, factories: Mapping[str, Callable[..., T]]) -> T:
    """Make the allocator that ``text`` describes, by the ``factories`` of these names.

    Raises
    ------
    ValueError
        If the text is not an expression, or names an allocator that does not exist.
    TypeError
        If a factory does not take what it is given.

    """

    def make(name: str, arguments: list[object], named: dict[str, object]) -> T:
        factory = factories.get(name)
        if factory is None:
            known = sorted(factories, key=str.lower)
            raise ValueError(
                f"no allocator {name!r}{did_you_mean(name, known)} in {shown}: there are {', '.join(known)}"
            )
        takes = inspect.signature(factory)
        for word in named:
            if word not in takes.parameters:
                near = did_you_mean(word, list(takes.parameters))
                raise TypeError(f"{name}() takes no {word}{near}: it takes {_described(takes)} (in {shown})")
        try:
            takes.bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}; it takes {_described(takes)} (in {shown})") from None
        return factory(*arguments, **named)

    shown = repr(text if len(text) <= 200 else f"{text[:200]}...")
    made: T = evaluate_expression(text, make)
    return made


def _described(takes: inspect.Signature) -> str:
    return ", ".join(str(one).partition(":")[0].partition("=")[0] for one in takes.parameters.values()) or "nothing"

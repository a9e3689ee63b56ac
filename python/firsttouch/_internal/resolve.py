"""What is accepted as an allocator: an object, an expression, an object with `allocate` and `deallocate`."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator, did_you_mean, evaluate_expression
from firsttouch.custom import AllocatorLike, OwnAllocator

T = TypeVar("T")


def evaluate(text: str, factories: Mapping[str, Callable[..., T]]) -> T:
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


P = ParamSpec("P")

FACTORIES: dict[str, Callable[..., Allocator]] = {}
"""The factories by their names, which expressions know; filled where the factories are."""

_METHODS = ("allocate", "deallocate")
_REMEMBERED = 64


def factory(function: Callable[P, Allocator]) -> Callable[P, Allocator]:
    """Makes a factory known to expressions."""
    FACTORIES[function.__name__] = function
    return function


def parse(text: str) -> Allocator:
    """A new allocator from its expression, as on the command line.

    Raises :exc:`ValueError` or :exc:`TypeError` that show the text and what is wrong with it.
    """
    return evaluate(text, FACTORIES)


@functools.lru_cache(maxsize=_REMEMBERED)
def _of_text(text: str) -> Allocator:
    """The allocator of a text: the same one each time, so that a pool is warm and a budget is one budget."""
    return parse(text)


def checked(allocator: object, caller: str) -> Allocator:
    """The allocator that ``allocator`` is, spells or brings; otherwise a :exc:`TypeError` that says what to give."""
    if isinstance(allocator, Allocator):
        return allocator
    if isinstance(allocator, str):
        return _of_text(allocator)
    name = getattr(allocator, "__name__", None)
    if name in FACTORIES and callable(allocator):
        raise TypeError(f"{caller} got the function firsttouch.{name}: did you mean firsttouch.{name}()?")
    has = [method for method in _METHODS if callable(getattr(allocator, method, None))]
    if isinstance(allocator, type) and has:
        raise TypeError(f"{caller} got the class {name}, not an object of it: did you mean {name}()?")
    if caller == "install()" and has:
        raise TypeError(
            f"install() can't take {type(allocator).__name__}, an allocator written in Python: memory that serves "
            "every thread is given back without the GIL; give C functions to firsttouch.from_functions(), or use use()"
        )
    if isinstance(allocator, OwnAllocator) and len(has) == len(_METHODS):
        return _firsttouch.own(allocator)
    if has:
        (lacks,) = set(_METHODS) - set(has)
        raise TypeError(
            f"{caller} got {type(allocator).__name__}, which has {has[0]}() and no {lacks}(): an allocator of one's "
            "own has allocate(nbytes, alignment, zeroed), which returns an address, and deallocate(address, nbytes)"
        )
    raise TypeError(
        f"{caller} takes an allocator, like firsttouch.pool(), not {type(allocator).__name__}: {allocator!r:.80}"
    )


def chosen(allocator: AllocatorLike | None, caller: str) -> Allocator | None:
    """The one that is named; ``None`` is the process's own."""
    return None if allocator is None else checked(allocator, caller)

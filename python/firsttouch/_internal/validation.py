"""Argument validation: messages name the argument, its value and what is accepted."""

import operator
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from firsttouch import _firsttouch

Size: TypeAlias = int | str
"""A size in bytes as a number, or text like ``"64 KiB"`` or ``"4 GB"``."""

Policy: TypeAlias = int | str
"""A NUMA node's number, or a policy such as ``"bind:0-1"`` or ``"interleave:all"``."""

Huge: TypeAlias = Literal[False] | str | Sequence[Literal[False] | str]
"""``False``, ``"thp"``, a size such as ``"2M"`` or ``"1G"``, or several of these, in order of preference."""


def size(name: str, value: object) -> int:
    """Return a size in bytes, from a number or text."""
    return _firsttouch.size_argument(name, value)


def threads(name: str, value: object, others: str) -> int:
    """Return a number of threads; ``others`` names what else is accepted."""
    wanted = f"{others} a number of threads from 1 to 1024"
    number = _integer(name, value, wanted)
    if not 1 <= number <= 1024:
        raise ValueError(f"{name}={value!r:.40}: give {wanted}")
    return number


def one_of(name: str, value: object, words: Iterable[str]) -> str:
    """Return one of a few keywords."""
    known = tuple(words)
    if isinstance(value, str) and value in known:
        return value
    wrong = ValueError if isinstance(value, str) else TypeError
    raise wrong(f"{name}={value!r:.40}: give {' or '.join(map(repr, known))}")


def _integer(name: str, value: object, wanted: str) -> int:
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise TypeError(f"{name}={value!r:.40} is {_kind(value)}: give {wanted}")


def _kind(value: object) -> str:
    name = type(value).__name__
    name = f"numpy.{name}" if type(value).__module__ == "numpy" else name  # it has a bool of its own
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"

"""Argument validation: messages name the argument, its value and what is accepted."""

import operator
from collections.abc import Iterable

from firsttouch import _firsttouch

Size = int | str
"""Bytes as a number, or text like ``"64 KiB"`` or ``"4 GB"``."""

_MOST = 2**63 - 1


def size(name: str, value: object) -> int:
    """A number of bytes, from a number or text."""
    if isinstance(value, str):
        try:
            return _firsttouch.parse_size(value)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name}: {error}") from None
    number = _integer(name, value, 'a number of bytes, or text like "4 GiB"')
    if not 0 <= number <= _MOST:
        raise ValueError(f'{name}={number} is not a number of bytes: give 0 or more, or text like "4 GiB"')
    return number


def byte(name: str, value: object) -> int | None:
    """A byte to fill memory with, or ``None``."""
    if value is None:
        return None
    number = _integer(name, value, "a byte, 0 to 255, or None to leave memory as it is")
    if not 0 <= number <= 255:
        raise ValueError(f"{name}={number} is not a byte: give 0 to 255, or None to leave memory as it is")
    return number


def address(name: str, value: object) -> int:
    """The address of a C function or of what it is handed."""
    number = _integer(name, value, "an address, as from ctypes.cast(function, ctypes.c_void_p).value")
    if not 0 <= number < 2**64:
        raise ValueError(f"{name}={number} is not an address: give 0 to 2**64 - 1")
    return number


def function(name: str, value: object) -> int:
    """The address of a C function; none lies at 0."""
    number = address(name, value)
    if number == 0:
        raise ValueError(f"{name}=0 is no function's address")
    return number


def flag(name: str, value: object) -> bool:
    """``True`` or ``False``, and nothing that is merely taken for it."""
    if isinstance(value, bool):
        return value
    raise TypeError(f"{name}={value!r:.40} is {_kind(value)}: give True or False")


def threads(name: str, value: object, others: str) -> int:
    """A number of threads; ``others`` says what else would do."""
    wanted = f"{others} a number of threads from 1 to 1024"
    number = _integer(name, value, wanted)
    if not 1 <= number <= 1024:
        raise ValueError(f"{name}={value!r:.40}: give {wanted}")
    return number


def one_of(name: str, value: object, words: Iterable[str]) -> str:
    """One of a few words."""
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

"""The containers of results: their contents, and how to make one like them with other contents.

They are lists, tuples, dicts (exactly these types), named tuples, dataclasses and arrays of objects. For all other
types, the meaning of their contents is unknown, and they are left unchanged.
"""

from collections.abc import Callable, Iterator
from types import MemberDescriptorType
from typing import Any, TypeAlias

import numpy as np

Replaced: TypeAlias = Callable[[Any], Any]

PLAIN = frozenset((bool, bytes, complex, float, int, str, type(None)))
"""The most common types without contents."""


def is_container(thing: Any) -> bool:
    """Return whether it is one of these containers."""
    kind = type(thing)
    if kind in (tuple, list, dict):
        return True
    if kind is np.ndarray:
        return bool(thing.dtype == object)
    return _is_named_tuple(kind) or _is_dataclass(kind)


def contents(thing: Any) -> list[Any]:
    """Return the current contents."""
    if isinstance(thing, (tuple, list)):
        return list(thing)
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, np.ndarray):
        held: list[Any] = thing.ravel(order="K").tolist()
        return held
    return [value for _, value in _attributes(thing)]


def shell(thing: Any) -> Any:
    """Return an empty list, dict or dataclass like it, or `thing` itself if none can be made."""
    if isinstance(thing, (list, dict)):
        return type(thing)()
    try:
        return object.__new__(type(thing))
    except TypeError:  # one of its bases is a class written in C
        return thing


def fill(new: Any, thing: Any, replaced: Replaced) -> None:
    """Fill a shell, or the copy of an array of objects, with the contents of `thing`."""
    if new is thing:
        return
    if isinstance(thing, list):
        new.extend(replaced(each) for each in thing)
    elif isinstance(thing, dict):
        new.update((key, replaced(value)) for key, value in thing.items())
    elif isinstance(thing, np.ndarray):
        items = np.empty(thing.size, object)
        for index, each in enumerate(thing.reshape(-1).tolist()):
            items[index] = replaced(each)
        new[...] = items.reshape(thing.shape)
    else:
        for put, value in _attributes(thing):
            put(new, replaced(value))


def again(thing: Any, replaced: Replaced) -> Any:
    """Return a tuple or named tuple like it."""
    kind = type(thing)
    new = tuple.__new__(kind, [replaced(each) for each in thing])
    if hasattr(new, "__dict__"):  # of a class derived from a named tuple
        vars(new).update((name, replaced(value)) for name, value in vars(thing).items())
    return new


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple)


def _is_dataclass(kind: type) -> bool:
    return hasattr(kind, "__dataclass_fields__")


def _attributes(thing: Any) -> Iterator[tuple[Callable[[Any, Any], None], Any]]:
    """Yield how each attribute is set, bypassing what forbids it, and its value; properties are left out."""
    for base in type(thing).__mro__:
        for slot in vars(base).values():
            if type(slot) is MemberDescriptorType:
                try:
                    value = slot.__get__(thing)
                except AttributeError:  # it is not set
                    continue
                yield slot.__set__, value
    for name, value in list(getattr(thing, "__dict__", {}).items()):
        yield _Named(name), value


class _Named:
    """Set an attribute in an object's own dictionary."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, thing: Any, value: Any) -> None:
        vars(thing)[self._name] = value

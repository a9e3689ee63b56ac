"""Kinds of scratch memory: the kinds of default buffers, and the protocol of custom scratch memory."""

import inspect
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class OwnScratch(Protocol):
    """Custom scratch memory: an object that implements ``allocate``, ``mark`` and ``rewind``.

    It is accepted by :func:`firsttouch.scratch` and :func:`firsttouch.default_buffer`.

    See Also
    --------
    scratch_from_table : Scratch memory written in C.

    Notes
    -----
    Scopes on it are nested strictly, and one thread at a time calls it, not always the same. Memory is rewound only
    where no live array lies on it.

    Examples
    --------
    >>> class Bump:
    ...     def __init__(self, nbytes):
    ...         self.memory = np.empty(nbytes, "u1")
    ...         self.used = 0
    ...
    ...     def allocate(self, nbytes, alignment):
    ...         at = self.memory.ctypes.data + self.used
    ...         at = -(-at // alignment) * alignment
    ...         if at + nbytes > self.memory.ctypes.data + self.memory.size:
    ...             return None
    ...         self.used = at + nbytes - self.memory.ctypes.data
    ...         return at
    ...
    ...     def mark(self):
    ...         return self.used
    ...
    ...     def rewind(self, mark):
    ...         self.used = mark
    >>> with ft.scratch(Bump(10**6)) as s:
    ...     s.zeros(3)
    array([0., 0., 0.])

    """

    def allocate(self, nbytes: int, alignment: int) -> int | None:
        """Return the address of a new block, which stays valid until :meth:`rewind` to an earlier mark.

        Parameters
        ----------
        nbytes : int
            Size in bytes, 1 or more.
        alignment : int
            The address is a multiple of this power of two.

        Returns
        -------
        int or None
            Address of the block; 0 or ``None`` if there is no room.

        """
        ...

    def mark(self) -> int:
        """Return the current position.

        Returns
        -------
        int
            What :meth:`rewind` takes.

        """
        ...

    def rewind(self, mark: int) -> None:
        """Rewind to an earlier position, which invalidates the marks taken since.

        Parameters
        ----------
        mark : int
            What :meth:`mark` returned.

        """
        ...


METHODS = {"allocate": "allocate(nbytes, alignment)", "mark": "mark()", "rewind": "rewind(mark)"}
"""Methods of custom scratch memory, and how they are called."""

_GIVEN = {"allocate": 2, "mark": 0, "rewind": 1}


def is_own(thing: object) -> bool:
    """Return whether it looks like custom scratch memory: an object, not a class, with at least one of the methods."""
    return not isinstance(thing, type) and any(callable(getattr(thing, name, None)) for name in METHODS)


def checked_own(thing: object, caller: str) -> OwnScratch:
    """Return the object if it has all the methods; otherwise raise a :exc:`TypeError` that names the missing ones."""
    name = type(thing).__name__
    wanted = f"custom scratch memory has {_listed(METHODS.values())}"
    if isinstance(thing, type):
        has = any(callable(getattr(thing, method, None)) for method in METHODS)
        hint = f"did you mean {thing.__name__}()?" if has else wanted
        raise TypeError(f"{caller} got the class {thing.__name__}, not an object of it: {hint}")
    lacks = [method for method in METHODS if not callable(getattr(thing, method, None))]
    if lacks:
        raise TypeError(f"{caller} got {name}, which has no {_listed(f'{method}()' for method in lacks)}: {wanted}")
    for method, count in _GIVEN.items():
        if not _takes(getattr(thing, method), count):
            raise TypeError(f"{caller} got {name}, whose {method} cannot be called as {METHODS[method]}: {wanted}")
    return thing  # type: ignore[return-value]


def checked_kind(
    kind: object, known: Mapping[str, Callable[[], Any]], caller: str
) -> tuple[Hashable, Callable[[], Any]]:
    """Return the key of a kind of buffer, and the function that makes one.

    ``known``: the makers of the kinds that have names, the default first. ``kind``: ``None``, one of those names or
    makers, or another class or function that is called without arguments and returns a buffer or custom scratch memory.
    Raises :exc:`TypeError` or :exc:`ValueError` with what was given and what is accepted.
    """
    accepted = (
        f"give {' or '.join(map(repr, known))}, or a class or function that is called without arguments and makes one"
    )
    if kind is None:
        kind = next(iter(known))
    if isinstance(kind, str):
        if kind not in known:
            raise ValueError(f"{caller}: kind={kind!r:.40}: {accepted}")
        return kind, known[kind]
    for name, maker in known.items():
        if kind is maker:
            return name, maker
    if not callable(kind):
        hint = "; that object itself goes to scratch() or using_buffer()" if is_own(kind) else ""
        raise TypeError(f"{caller}: kind={kind!r:.60} is {type(kind).__name__}: {accepted}{hint}")
    if not _takes(kind, 0):
        name = getattr(kind, "__name__", type(kind).__name__)
        raise TypeError(f"{caller}: {name} cannot be called without arguments: {accepted}, like partial({name}, ...)")
    try:
        hash(kind)
    except TypeError:
        raise TypeError(
            f"{caller}: kind={kind!r:.60} cannot be hashed, so its buffer could not be found again"
        ) from None
    return kind, kind


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Return whether it can be called with this number of arguments, as far as its signature tells."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C, without a signature
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _listed(words: Any) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else str(last)

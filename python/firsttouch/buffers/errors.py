"""What decorated functions warn of and raise; apart, so that the package is imported without NumPy."""

import typing as _typing


class EscapeWarning(RuntimeWarning):
    """Arrays that were made in a scope live on after it."""


class EscapeError(RuntimeError):
    """Arrays that were made in a scope live on after it; they stay valid.

    ``survivors`` are their blocks: address, bytes, shape, dtype and line, as far as known.
    """

    def __init__(self, message: str, survivors: tuple[_typing.Any, ...] = ()) -> None:
        super().__init__(message)
        self.survivors = survivors


for _public in (EscapeError, EscapeWarning):
    _public.__module__ = "firsttouch"

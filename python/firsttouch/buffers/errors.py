"""The warning and the error about arrays that outlive a scope."""

import typing as _typing


class EscapeWarning(RuntimeWarning):
    """Arrays that were made in a scope outlive it.

    See Also
    --------
    firsttouch.scratch : Warns of them with ``escape="warn"``.

    """


class EscapeError(RuntimeError):
    """Arrays that were made in a scope outlive it; they stay valid.

    Attributes
    ----------
    survivors : tuple
        Their blocks: address, bytes, shape, dtype and line, as far as known.

    See Also
    --------
    firsttouch.scratch : Raises it with ``escape="raise"``.

    """

    def __init__(self, message: str, survivors: tuple[_typing.Any, ...] = ()) -> None:
        super().__init__(message)
        self.survivors = survivors


for _public in (EscapeError, EscapeWarning):
    _public.__module__ = "firsttouch.buffers"

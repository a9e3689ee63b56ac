"""Warnings and errors about arrays that outlive their scope."""

import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from _firsttouch_start import units
from firsttouch.buffers import holders
from firsttouch.buffers.errors import EscapeError, EscapeWarning

_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_SHOWN = 5


class Survivor(NamedTuple):
    """A block that outlives its scope: address, size, and what is known of the array on it."""

    address: int
    nbytes: int
    shape: tuple[int, ...] | None = None
    dtype: Any = None
    site: str | None = None

    def __str__(self) -> str:
        if self.shape is None:
            what = f"{units.size(self.nbytes)} at {self.address:#x}"
        else:
            what = f"{'' if self.dtype is None else f'{self.dtype} '}{self.shape}"
        return f"{what}, made at {self.site}" if self.site else what


def report(
    function_name: str, survivors: Iterable[Any], escape: Literal["keep", "warn", "raise"], buffer_name: str
) -> None:
    """Warn of arrays that outlived a decorated call, or raise :exc:`EscapeError`; ``"keep"`` does neither.

    ``survivors`` contains the fields of :class:`Survivor`, by position or by name. A missing shape is searched for in
    all objects that the garbage collector tracks.
    """
    if escape == "keep":
        return
    blocks = _blocks(survivors)
    if not blocks:
        return
    blocks = _described(blocks, holders.anywhere((block.address, block.nbytes) for block in blocks))
    message = (
        f"{_counted(blocks)} made in {function_name}() outlived it in {buffer_name}: {_listed(blocks)}. "
        f"{_kept(blocks)}: {_advice(blocks)}"
    )
    if escape == "raise":
        raise EscapeError(message, tuple(blocks))
    warnings.warn(message, EscapeWarning, stacklevel=_outside())


def note(error: BaseException, survivors: Iterable[Any]) -> None:
    """Add a note to an exception that leaves a scope, about what it keeps alive, usually through its traceback."""
    blocks = _blocks(survivors)
    if not blocks:
        return
    found = holders.in_traceback(error.__traceback__, ((block.address, block.nbytes) for block in blocks))
    blocks = _described(blocks, found)
    text = f"firsttouch: {_counted(blocks)} made in a scratch scope outlived it: {_listed(blocks)}. {_kept(blocks)}."
    if text not in getattr(error, "__notes__", ()):  # the same exception may be raised repeatedly
        error.add_note(text)


def _blocks(survivors: Iterable[Any]) -> list[Survivor]:
    return [Survivor(**each) if isinstance(each, Mapping) else Survivor(*each) for each in survivors]


def _described(blocks: list[Survivor], found: Mapping[int, holders.Found]) -> list[Survivor]:
    """Return the blocks, completed by the arrays that were found in them."""
    return [
        block._replace(shape=found[block.address].shape, dtype=found[block.address].dtype)
        if block.shape is None and block.address in found
        else block
        for block in blocks
    ]


def _counted(blocks: list[Survivor]) -> str:
    total = units.size(sum(block.nbytes for block in blocks))
    return f"an array ({total})" if len(blocks) == 1 else f"{len(blocks)} arrays ({total})"


def _listed(blocks: list[Survivor]) -> str:
    largest = sorted(blocks, key=lambda block: -block.nbytes)
    more = f"; and {len(blocks) - _SHOWN} more" if len(blocks) > _SHOWN else ""
    return "; ".join(map(str, largest[:_SHOWN])) + more


def _kept(blocks: list[Survivor]) -> str:
    one = "It stays valid, and its memory is not reused"
    return one if len(blocks) == 1 else "They stay valid, and their memory is not reused"


def _advice(blocks: list[Survivor]) -> str:
    if len(blocks) == 1:
        return "return it, copy it before it is stored, or make it with another allocator"
    return "return them, copy them before they are stored, or make them with another allocator"


def _outside() -> int:
    """Return how many frames up from the caller the first one outside this package is."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level

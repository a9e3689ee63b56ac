"""Arrays that several processes of a host share: one memory, handed over without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from firsttouch.placement.pages import Huge
from firsttouch.placement.policies import PolicyLike
from firsttouch.sharing import making
from firsttouch.sharing.errors import SharedArrayError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["SharedArrayError", "share", "shared"]


def shared(
    shape: Any,
    dtype: npt.DTypeLike = float,
    order: Literal["C", "F"] = "C",
    *,
    huge: Huge = False,
    numa: PolicyLike | None = None,
    populate: bool | int = False,
    strict: bool = False,
) -> np.ndarray:
    """An array of zeros on memory that other processes of this host map too: what one writes, all see.

    Pickled, it is a handle of a few hundred bytes, however it travels (``multiprocessing`` in all start methods,
    process pools, joblib, a pipe): it arrives as an ordinary array on the same memory, and so do its views. An array
    that can't be written arrives so. A forked child shares it as it is, and holds it until it ends. Whoever has it may
    keep it; the memory goes when the last process lets it go or dies, however it dies.

    A handle can be opened as often as one likes while its sender holds the array. After the sender has let it go, one
    that nobody has opened yet can be opened once, for 60 seconds. Such arrays may take a quarter of the sender's file
    descriptors (``RLIMIT_NOFILE``) and, beyond 64 MiB and the newest, a sixteenth of the memory or a quarter of what is
    free, whichever is less; the oldest goes first. A process that ends waits up to 2 seconds for handles in flight.

    ``shape``, ``dtype`` and ``order`` are as for :func:`firsttouch.zeros`; objects can't be shared. ``huge``, ``numa``,
    ``populate`` and ``strict`` are as for :func:`firsttouch.pages`, and :func:`firsttouch.receipt` says what was
    granted; transparent huge pages need ``/sys/kernel/mm/transparent_hugepage/shmem_enabled``.

    Raises :exc:`TypeError` or :exc:`ValueError` for arguments, :exc:`MemoryError` where there is no memory,
    :exc:`OSError` where the system allows no further memory file (each takes a file number in each process). A handle
    that can't be opened is a :exc:`firsttouch.SharedArrayError`.
    """
    return making.zeros(shape, dtype, order, huge, numa, populate, strict)


def share(a: npt.ArrayLike) -> np.ndarray:
    """``a`` on shared memory: as it is where its memory is shared already, else copied there once.

    What arrived from another process is an ordinary array, and is pickled as a copy; this makes it one to be handed on.

    Raises as :func:`shared`.
    """
    return making.share(a)

"""Allocators of one's own, written in Python, and everything else that can stand for an allocator."""

from typing import Protocol, TypeAlias, runtime_checkable

from firsttouch._firsttouch import Allocator


@runtime_checkable
class OwnAllocator(Protocol):
    """An object that brings memory in itself: for constructors and :func:`use`, not for :func:`install`.

    Its blocks are given back at the next chance that the interpreter has, with the GIL held, in the order in which
    arrays let go of them, but not at once and not always in the thread that made them.
    """

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        """The address of ``nbytes`` (1 or more) at a multiple of ``alignment``, all zero if ``zeroed``.

        They stay as they are until :meth:`deallocate`. Whatever is raised reaches the caller of a constructor.
        """
        ...

    def deallocate(self, address: int, nbytes: int) -> None:
        """Takes back what ``allocate(nbytes, ...)`` returned; an exception goes to :func:`sys.unraisablehook`."""
        ...


AllocatorLike: TypeAlias = Allocator | str | OwnAllocator
"""Wherever an allocator is taken: one of firsttouch's, its expression as text, an object of one's own."""

"""Custom allocators, written in Python, and everything else that is accepted as an allocator."""

from typing import Protocol, TypeAlias, runtime_checkable

from firsttouch._firsttouch import Allocator

__all__ = ["AllocatorLike", "OwnAllocator"]


@runtime_checkable
class OwnAllocator(Protocol):
    """An object that implements ``allocate`` and ``deallocate``, for constructors and :class:`firsttouch.use`.

    See Also
    --------
    firsttouch.allocators.from_functions : Allocators written in C, which :func:`firsttouch.install` accepts as well.

    Notes
    -----
    Blocks are freed in the order in which arrays release them, as soon as the interpreter can run the call; not
    necessarily at once, nor in the thread that allocated them. Several threads may call the methods: in free-threaded
    Python at the same time, elsewhere in turns.

    Examples
    --------
    >>> import ctypes
    >>> class Counting:
    ...     def __init__(self):
    ...         self.blocks = {}
    ...
    ...     def allocate(self, nbytes, alignment, zeroed):
    ...         block = ctypes.create_string_buffer(nbytes + alignment)  # zeroed
    ...         address = -(-ctypes.addressof(block) // alignment) * alignment
    ...         self.blocks[address] = block
    ...         return address
    ...
    ...     def deallocate(self, address, nbytes):
    ...         del self.blocks[address]
    >>> counting = Counting()
    >>> a = ft.zeros(1000, allocator=counting)
    >>> len(counting.blocks)
    1

    """

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        """Return the address of a new block, which stays valid until :meth:`deallocate`.

        Parameters
        ----------
        nbytes : int
            Size in bytes, 1 or more.
        alignment : int
            The address is a multiple of this power of two.
        zeroed : bool
            Whether the block has to be all zero.

        Returns
        -------
        int
            Address of the block. What this method raises reaches the caller of a constructor; under
            :class:`firsttouch.use` it is the cause of NumPy's :exc:`MemoryError`.

        """
        ...

    def deallocate(self, address: int, nbytes: int) -> None:
        """Free a block.

        Parameters
        ----------
        address : int
            What :meth:`allocate` returned.
        nbytes : int
            Size that was requested, in bytes.

        Notes
        -----
        An exception is passed to :func:`sys.unraisablehook`.

        """
        ...


AllocatorLike: TypeAlias = Allocator | str | OwnAllocator
"""What is accepted as an allocator: an :class:`Allocator`, its expression as text, or a custom allocator."""

"""The allocators that the contract is tested on through NumPy; the contract in Rust is tested on all compositions."""

import sys
from collections.abc import Callable

import firsttouch as ft

STACKS = (
    "malloc()",
    "calloc()",
    "aligned(4096)",
    'pages(huge="thp")',
    "mimalloc()",
    *(["jemalloc()"] if sys.platform != "win32" else []),  # which is not built there
    "pool()",
    "pool(max_idle=0, decay=0.0)",
    "pool(malloc())",
    'limited(pool(pages()), "64 GiB")',
    'guarded(side="before")',
    'guarded(keep="8 MiB")',
    "filled(calloc(), on_allocate=None, on_free=0)",
    "limited(filled(guarded()), '1 TiB')",
)

#: Buffers, outside all scopes.
BUFFERS: dict[str, Callable[[], ft.Allocator]] = {
    "ScratchBuffer": ft.ScratchBuffer,
    "ScratchBuffer, small chunks": lambda: ft.ScratchBuffer("4 KiB", upstream="malloc()"),
    "ScratchBuffer, large chunks": lambda: ft.ScratchBuffer("64 MiB"),
    "ScratchBuffer on a buffer": lambda: ft.ScratchBuffer(upstream=ft.ScratchBuffer()),
    "FixedBuffer": lambda: ft.FixedBuffer("256 MiB"),
}

#: Those whose blocks can be told from others by their address.
INSTALLED = tuple(stack for stack in STACKS if stack != "malloc()" and not stack.startswith("aligned"))


def make(stack: str) -> ft.Allocator:
    """The allocator that the expression makes, or the buffer of that name."""
    if stack in BUFFERS:
        return BUFFERS[stack]()
    with ft.use(stack) as allocator:
        return allocator

"""The allocators that the contract is tested on. A new one is added as a line."""

from collections.abc import Callable

import firsttouch as ft

SOURCES = (
    "malloc()",
    "calloc()",
    "aligned(64)",
    "aligned(4096)",
    'aligned("2 MiB")',
    "pages()",
    'pages(huge="thp")',
    "mimalloc()",
    "jemalloc()",
)

STACKS = (
    *SOURCES,
    "pool()",
    "pool(pages())",
    "pool(decay=None)",
    "pool(max_idle=0, decay=0.0)",
    "pool(malloc())",
    "pool(aligned(4096))",
    'pool(limited(pages(), "64 GiB"))',
    "tracked(pool())",
    "tracked(malloc())",
    "tracked(mimalloc())",
    'limited(pool(), "64 GiB")',
    'limited(limited(pool(), "64 GiB"), "32 GiB")',
    'limited(jemalloc(), "64 GiB")',
    "guarded()",
    'guarded(pages(), side="before")',
    'guarded(pages(), keep="8 MiB")',
    "guarded(pool())",
    'guarded(pool(), side="before")',
    "guarded(malloc())",
    "filled()",
    "filled(pool(), on_allocate=165, on_free=90)",
    "filled(calloc(), on_allocate=None, on_free=0)",
    "filled(guarded(pages()))",
    "tracked(filled(guarded(pool())))",
    'limited(tracked(pool(malloc())), "64 GiB")',
)

#: Buffers, outside all scopes.
BUFFERS: dict[str, Callable[[], ft.Allocator]] = {
    "ScratchBuffer": ft.ScratchBuffer,
    "ScratchBuffer, small chunks": lambda: ft.ScratchBuffer("4 KiB", upstream="malloc()"),
    "ScratchBuffer, large chunks, debug": lambda: ft.ScratchBuffer("64 MiB", debug=True),
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

"""Conditions that hold for a whole program: the machine is a different one, now and then."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from random import Random

from firsttouch import _firsttouch
from tests.trust.steps import processes, raw
from tests.trust.world import World

_C = ctypes.CDLL(None, use_errno=True)
_DENIED = {  # system calls of x86-64 that containers refuse, or old kernels do not know
    "mbind": 237,
    "get_mempolicy": 239,
    "move_pages": 279,
    "mlock": 149,
    "memfd_create": 319,
    "process_madvise": 440,
    "membarrier": 324,
    "getcpu": 309,
    "mincore": 27,
}


def deny(number: int, error: int) -> None:
    """Let a system call fail with an error from now on, in this process and its children (seccomp(2))."""
    load, equal, back = 0x20, 0x15, 0x06
    code = [(load, 0, 0, 0), (equal, 0, 1, number), (back, 0, 0, 0x50000 | error), (back, 0, 0, 0x7FFF0000)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(text)))
    _C.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    _C.prctl(22, 2, program, 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def checks(seed: int) -> str | None:
    """Return the PYTHONMALLOC of a program, by which CPython checks the blocks that it gets back, now and then."""
    random = Random(f"PYTHONMALLOC of {seed}")
    ways = ("debug", "malloc", "malloc_debug", "pymalloc_debug") if processes.GIL else ("debug", "mimalloc_debug")
    return random.choice(ways) if random.random() < 0.2 else None


def set_up(random: Random) -> tuple[World, str]:
    """Draw the conditions of a program; return its world, and what they are."""
    world, told = World(random.choice((1, 2, 2, 4, 4, 16, 256)) << 19), []
    told.append(f"at most {world.most >> 10} KiB")
    if random.random() < 0.25:
        _firsttouch.shrink_address_space()
        world.tolerant = True  # it has room for a hundred pools, and arrays keep theirs
        told.append("an address space of 39 bits")
    if random.random() < 0.2:
        _C.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
        told.append("no huge pages")
    if random.random() < 0.15 and platform.machine() == "x86_64":
        name, error = random.choice(tuple(_DENIED)), random.choice((1, 38))  # EPERM, ENOSYS
        deny(_DENIED[name], error)
        world.tolerant = True
        told.append(f"{name} fails with {error}")
    if random.random() < 0.15:
        room = random.choice((256, 512, 1024)) << 20
        with open("/proc/self/statm", encoding="ascii") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + room, -1))
        world.tolerant = world.cramped = True
        told.append(f"{room >> 20} MiB of address space")
    if random.random() < 0.1:
        world.tolerant = True
        told.append("allocators that refuse")
    if "PYTHONMALLOC" in os.environ:
        told.append(f"PYTHONMALLOC={os.environ['PYTHONMALLOC']}")
    if random.random() < 0.2 and not world.cramped:
        raw.hooked(world, random)
        told.append(f"{', '.join(raw.STANDING)} before CPython's allocator")
    return world, ", ".join(told)

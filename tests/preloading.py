"""Libraries to preload: our own shims, compiled here, and other allocators if they are installed."""

import subprocess
from pathlib import Path

import pytest

from tests.programs import compiled

#: The allocators people preload instead of us, and the file that Debian ships.
PEERS = {
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so.2",
    "tbbmalloc": "libtbbmalloc_proxy.so.2",
}


def shim(source: str, path: Path) -> Path:
    """A shared library made of C source."""
    path.with_suffix(".c").write_text(source, encoding="ascii")
    return compiled(path, "-O1", "-Werror", "-shared", "-fPIC", path.with_suffix(".c"), "-ldl")


def peer(name: str) -> str:
    """The library of an allocator; the test is skipped where it is not installed."""
    found = _installed(PEERS[name])
    if found is None:
        pytest.skip(f"{PEERS[name]} is not installed")
    return found


def _installed(file: str) -> str | None:
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    return next((line.split(" => ")[1].strip() for line in known.splitlines() if line.split()[:1] == [file]), None)

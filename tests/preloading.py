"""Libraries to preload: our own shims, compiled here, and other allocators if they are installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

#: The allocators people preload instead of us, and the file that Debian ships.
PEERS = {
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so.2",
    "tbbmalloc": "libtbbmalloc_proxy.so.2",
}


def compiled(source: str, path: Path) -> Path:
    """A shared library made of C source; the test is skipped where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    code = path.with_suffix(".c")
    code.write_text(source, encoding="ascii")
    subprocess.run(
        [compiler, "-O1", "-Wall", "-Werror", "-shared", "-fPIC", str(code), "-o", str(path), "-ldl"], check=True
    )
    return path


def peer(name: str) -> str:
    """The library of an allocator; the test is skipped where it is not installed."""
    found = _installed(PEERS[name])
    if found is None:
        pytest.skip(f"{PEERS[name]} is not installed")
    return found


def _installed(file: str) -> str | None:
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    return next((line.split(" => ")[1].strip() for line in known.splitlines() if line.split()[:1] == [file]), None)

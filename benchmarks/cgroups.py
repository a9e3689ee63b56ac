"""A memory cgroup for one program, below the own group of this process, removed after use."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


class NoGroupError(Exception):
    """No group can be made here; the message says why."""


@dataclass(frozen=True)
class Group:
    """A group of version 1 or 2."""

    folder: Path
    version: int

    def enter(self) -> None:
        """Move the calling process into it: for `preexec_fn`."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def limit(self, size: int) -> None:
        (self.folder / ("memory.limit_in_bytes" if self.version == 1 else "memory.max")).write_text(str(size))
        with contextlib.suppress(OSError):  # no swap either; where there is none the file may be missing
            name, value = ("memory.memsw.limit_in_bytes", size) if self.version == 1 else ("memory.swap.max", 0)
            (self.folder / name).write_text(str(value))

    def used(self) -> int:
        """Anonymous bytes in use; the page cache is the kernel's business."""
        name = "rss" if self.version == 1 else "anon"
        for line in (self.folder / "memory.stat").read_text().splitlines():
            key, value = line.split()
            if key == name:
                return int(value)
        raise LookupError(name)

    def peak(self) -> int:
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        return int((self.folder / name).read_text())


def _own(controllers: Callable[[str], bool]) -> str | None:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controllers(names):
            return path
    return None


def _parent() -> tuple[Path, int] | None:
    path = _own(lambda names: "memory" in names.split(","))
    if path is not None:
        return Path("/sys/fs/cgroup/memory") / path.lstrip("/"), 1
    path = _own(lambda names: names == "")
    if path is not None:
        folder = Path("/sys/fs/cgroup") / path.lstrip("/")
        if "memory" in (folder / "cgroup.subtree_control").read_text().split():
            return folder, 2
    return None


@contextlib.contextmanager
def group(limit: int | None = None) -> Iterator[Group]:
    """A group with a limit in bytes."""
    try:
        parent = _parent()
        if parent is None:
            raise NoGroupError("no memory cgroup can be made here: its controller is not delegated")
        made = Group(parent[0] / f"firsttouch-test-{os.getpid()}-{time.monotonic_ns()}", parent[1])
        made.folder.mkdir()
        if limit is not None:
            made.limit(limit)
    except OSError as error:
        raise NoGroupError(f"no memory cgroup can be made here: {error}") from None
    try:
        yield made
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                made.folder.rmdir()
                break
            time.sleep(0.02)

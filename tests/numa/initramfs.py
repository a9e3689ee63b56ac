"""The file system that a guest starts with: an archive in cpio's "newc" format, written here without any tools."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

_CONSOLE = (5, 1)  # without it the first process would have nowhere to write


class Initramfs:
    """Files by the path that they have in the guest."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._made: set[str] = set()
        self._entry("dev/console", stat.S_IFCHR | 0o600, device=_CONSOLE)

    def add(self, path: str, source: Path, executable: bool = False) -> None:
        """A file, as its content is now; links are followed."""
        mode = 0o755 if executable or os.access(source, os.X_OK) else 0o644
        self._entry(path, stat.S_IFREG | mode, source.read_bytes())

    def add_text(self, path: str, text: str, executable: bool = False) -> None:
        """A file with this text."""
        self._entry(path, stat.S_IFREG | (0o755 if executable else 0o644), text.encode())

    def add_folder(self, path: str, source: Path, without: Iterable[str] = ()) -> None:
        """All files below a folder, except folders of some names."""
        skipped = {*without, "__pycache__"}
        for at, folders, files in os.walk(source):
            folders[:] = [name for name in folders if name not in skipped]
            for name in files:
                file = Path(at, name)
                if file.is_file():
                    self.add(f"{path}/{file.relative_to(source)}", file)

    def write(self, path: Path) -> None:
        """Write the archive."""
        path.write_bytes(b"".join([*self._parts, _header("TRAILER!!!", 0, 0, (0, 0), 0)]))

    def _entry(self, path: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        path = path.strip("/")
        if path in self._made:
            return
        folder = path.rpartition("/")[0]
        if folder:
            self._entry(folder, stat.S_IFDIR | 0o755)
        self._made.add(path)
        self._parts += [_header(path, mode, len(content), device, len(self._made)), content, _padding(len(content))]


def _padding(length: int) -> bytes:
    return b"\0" * (-length % 4)


def _header(path: str, mode: int, size: int, device: tuple[int, int], number: int) -> bytes:
    name = path.encode() + b"\0"
    fields = [number, mode, 0, 0, 1, 0, size, 0, 0, *device, len(name), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return head + _padding(len(head))

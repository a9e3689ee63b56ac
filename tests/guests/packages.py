"""Debian packages for guests: fetched by apt, unpacked, not installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Unavailable(Exception):
    """What is missing, in words."""


@dataclass(frozen=True)
class Packages:
    """This machine's packages."""

    def unpack(self, name: str, into: Path) -> None:
        """Unpack a package, or the one that a package without content stands for (`linux-image-*`)."""
        for tool in ("apt-get", "apt-cache", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise Unavailable(f"no {tool} to fetch {name} with")
        into.mkdir(parents=True, exist_ok=True)
        wanted = re.findall(r"Depends: (linux-image-\S+)", self._run(["apt-cache", "depends", name], into))
        self._run(["apt-get", "download", "-qq", wanted[0] if wanted else name], into)
        for package in into.glob("*.deb"):
            self._run(["dpkg-deb", "-x", str(package), "."], into)
            package.unlink()

    def _run(self, command: list[str], folder: Path) -> str:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()[-300:]} (apt-get update may help)")
        return done.stdout

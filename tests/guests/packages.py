"""Debian packages for guests: fetched by apt, unpacked, not installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")


class Unavailable(Exception):
    """What is missing, in words."""


@dataclass(frozen=True)
class Packages:
    """This machine's packages, or those that a file of settings names to apt."""

    settings: Path | None = None

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
        named = {"APT_CONFIG": str(self.settings)} if self.settings else {}
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **named},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()[-300:]} (apt-get update may help)")
        return done.stdout


def foreign(folder: Path, architecture: str, suite: str) -> Packages:
    """The packages of another architecture and of any Debian; their lists lie in `folder`, not among this machine's."""
    if not os.path.exists(KEYS):
        raise Unavailable(f"{KEYS} is not there (Debian: apt-get install debian-archive-keyring)")
    folder = folder.resolve()
    for part in ("lists/partial", "archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={KEYS}] {MIRROR} {suite} main\n")
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "root",
        "Dir::State": folder,
        "Dir::State::Lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder,
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Acquire::Languages": "none",
    }
    written = folder / "apt.conf"
    written.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    packages = Packages(written)
    if not any((folder / "lists").glob("*_Packages*")):
        packages._run(["apt-get", "update", "-qq"], folder)
    return packages

"""What pip calls to build: maturin, after the library for programs in other languages, which its wheel takes along."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_ROOT = Path(__file__).resolve().parents[1]


def build_wheel(folder: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """Build the wheel, and return its name."""
    _build_library()
    name: str = maturin.build_wheel(folder, settings, metadata)
    return name


def build_editable(folder: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """Build the wheel of an editable installation, and return its name."""
    _build_library()
    name: str = maturin.build_editable(folder, settings, metadata)
    return name


def _build_library() -> None:
    """Build the library that `firsttouch run PROGRAM` preloads, where there is a malloc that it can replace."""
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc" or shutil.which("cargo") is None:
        return
    # As maturin's own: `make` builds what it tests with the profile "fast".
    words = os.environ.get("MATURIN_PEP517_ARGS", "").split()
    profile = words[words.index("--profile") + 1] if "--profile" in words else "release"
    command = ["cargo", "build", "--profile", profile, "--locked", "--package", "firsttouch-preload"]
    done = subprocess.run([*command, "--message-format", "json-render-diagnostics"], cwd=_ROOT, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    for line in done.stdout.splitlines():
        for built in json.loads(line).get("filenames", ()):
            if built.endswith("libfirsttouch_preload.so"):
                library = _ROOT / "python" / "firsttouch" / "_lib" / "libfirsttouch_preload.so"
                library.parent.mkdir(exist_ok=True)
                library.unlink(missing_ok=True)  # or programs would find it changed that run with it
                shutil.copy(built, library)

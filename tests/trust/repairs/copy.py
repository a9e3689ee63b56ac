"""A copy of the checkout, in which repairs are taken out and built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.trust.campaign import ROOT, SCRIPTS

COPY = SCRIPTS / "repairs" / "checkout"
ENVIRONMENT = SCRIPTS / "repairs" / "environment"
"""Where the build is installed; all other packages are those of this environment."""
_QUICK = {  # a build to look for faults with, not to measure
    "CARGO_TARGET_DIR": str(SCRIPTS / "repairs" / "build"),
    "CARGO_INCREMENTAL": "1",
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
}


def refresh() -> None:
    """Make the copy like the checkout; files that are alike keep their times, by which cargo knows what to build."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        source, copy = ROOT / name, COPY / name
        if source.is_file() and (not copy.exists() or copy.read_bytes() != source.read_bytes()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            copy.chmod(source.stat().st_mode)


def apply(patch: Path, where: Path = COPY, *options: str) -> None:
    """Apply a patch; in a folder that Git does not take for a part of the checkout."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(where.parent)}
    subprocess.run(["git", "apply", *options, str(patch)], cwd=where, env=environment, check=True)


def build() -> None:
    """Build the copy's wheel, and install it into an environment of its own."""
    wheels = ENVIRONMENT.parent / "wheel"
    for old in (wheels, ENVIRONMENT):
        shutil.rmtree(old, ignore_errors=True)
    command = [str(ROOT / ".venv-build" / "bin" / "maturin"), "build", "--quiet", "--release", "--locked"]
    command += ["--interpreter", sys.executable, "--out", str(wheels)]
    subprocess.run(command, cwd=COPY, env={**os.environ, **_QUICK}, check=True, stderr=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(ENVIRONMENT)], check=True)
    (packages,) = ENVIRONMENT.glob("lib/*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "--python", str(ENVIRONMENT / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*command, "--no-deps", "--force-reinstall", *map(str, wheels.glob("*.whl"))], check=True)

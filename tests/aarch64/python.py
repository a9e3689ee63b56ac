"""Debian's Python for a guest, with NumPy, a wheel for ARM in `dist`, and a part of the quick tests."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tests.guests.packages import Unavailable

if TYPE_CHECKING:
    from tests.guests.initramfs import Initramfs

ROOT = Path(__file__).resolve().parents[2]
VERSION = "3.13"
PACKAGES = (
    "python3.13-minimal",
    "libpython3.13-minimal",
    "libpython3.13-stdlib",
    "zlib1g",
    "libexpat1",
    "libffi8",
    "libbz2-1.0",
    "liblzma5",
    "libstdc++6",
)
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")
#: Where Debian's Python looks, also in isolated mode.
SITE = "usr/lib/python3/dist-packages"
#: What runs the tests, all of it Python: this one's serves.
RUNNER = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")
FOLDERS = ("arrays", "creation", "handlers", "scopes", "expressions")
#: Files that need more than the guest has, or too long.
NEEDING_MORE = re.compile(r"hypothesis|@pytest.mark.slow")
OPTIONS = "-q -m quick -p no:cacheprovider --continue-on-collection-errors -o addopts= -o timeout=0"
COMMANDS = {
    "python": "python3.13 -I /guest_python.py",
    "quick": f"python3.13 -m pytest {OPTIONS} -c /quick/pyproject.toml --rootdir /quick /quick/tests",
}


def wheel() -> Path:
    """The newest wheel for 64-bit ARM."""
    found = sorted((ROOT / "dist").glob("firsttouch-*-abi3-*aarch64.whl"))
    if not found:
        raise Unavailable("dist holds no wheel for 64-bit ARM (cibuildwheel --archs aarch64)")
    return found[-1]


def site(folder: Path) -> None:
    """Unpack the wheel, and NumPy's of the version that is installed here."""
    locked = version("numpy")
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--python-version", VERSION, *platforms, "--dest", str(folder.parent)]
    if not list(folder.parent.glob(f"numpy-{locked}-*.whl")):
        done = subprocess.run([*command, f"numpy=={locked}"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"NumPy's wheel cannot be had: {done.stderr.strip()[-300:]}")
    for archive in (*folder.parent.glob(f"numpy-{locked}-*.whl"), wheel()):
        with zipfile.ZipFile(archive) as content:
            content.extractall(folder)


def add(files: Initramfs, folder: Path) -> None:
    """Add all that Python needs but its own packages."""
    files.add_folder(SITE, folder, ("tests", "test"))
    for name in RUNNER:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise Unavailable(f"this Python has no {name}")
        origin = Path(spec.origin)
        if origin.stem == "__init__":
            files.add_folder(f"{SITE}/{name}", origin.parent)
        else:
            files.add(f"{SITE}/{origin.name}", origin)
    files.add("guest_python.py", Path(__file__).parent / "guest_python.py")
    files.add("quick/pyproject.toml", ROOT / "pyproject.toml")
    for source in ROOT.glob("tests/*.py"):
        files.add(f"quick/tests/{source.name}", source)
    for name in FOLDERS:
        for source in ROOT.glob(f"tests/{name}/**/*.py"):
            if source.stem == "__init__" or not NEEDING_MORE.search(source.read_text()):
                files.add(f"quick/{source.relative_to(ROOT)}", source)

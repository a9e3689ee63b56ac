"""The source distribution: a wheel built from it is complete."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def maturin() -> str | None:
    """The one that built our wheel, or any other."""
    ours = ROOT / ".venv-build" / "bin" / "maturin"
    return str(ours) if ours.exists() else shutil.which("maturin")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    tool = maturin()
    if tool is None or shutil.which("cargo") is None:
        pytest.skip("maturin or cargo is not installed")
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run([tool, "sdist", "--out", folder], cwd=ROOT, check=True, capture_output=True)
    (archive,) = folder.glob("firsttouch-*.tar.gz")
    with tarfile.open(archive) as contents:
        return {name.partition("/")[2] for name in contents.getnames()}


def test_what_the_wheel_is_made_of_is_packed(packed: set[str]) -> None:
    crates = [
        f"crates/{name}" for name in ("firsttouch", "firsttouch-trace", "firsttouch-preload", "firsttouch-python")
    ]
    for folder in (*crates, "python", "wheel-data", "wheels/backend"):
        here = {
            str(path.relative_to(ROOT))
            for path in (ROOT / folder).rglob("*")
            if path.suffix in {".rs", ".toml", ".py", ".pyi", ".pth", ".start", ".typed"} and "tests" not in path.parts
        }
        assert here, folder
        assert here <= packed, here - packed


def test_the_lock_and_both_licences_are_packed(packed: set[str]) -> None:
    assert {"Cargo.lock", "pyproject.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"} <= packed

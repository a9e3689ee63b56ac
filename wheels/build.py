"""Builds the sdist, and from it the wheels: what is missing from the sdist is missed here."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from wheels import elf, readme
from wheels.steps import WORK, FailedError, find_python, run, say, tool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GNU = "x86_64-unknown-linux-gnu"
MUSL = "x86_64-unknown-linux-musl"
ARM = "aarch64-unknown-linux-gnu"
ARM_COMPILER = "aarch64-linux-gnu-gcc"
#: The C library of manylinux2014: the oldest that Rust and NumPy's own wheels still serve.
GLIBC = "2.17"
LIBRARY = "libfirsttouch_preload.so"
#: For each kind of wheel: which Python it is built for, the target, and the platform that it promises.
KINDS = {
    "gnu": ("--first", GNU, "manylinux2014"),
    "free-threaded": ("--free-threaded", GNU, "manylinux2014"),
    "aarch64": ("--first", ARM, "manylinux2014"),
    "musl": ("--first", MUSL, "musllinux_1_2"),
}


def build(dist: Path, kinds: Sequence[str]) -> None:
    """Build what was asked for into a folder."""
    tree = _sdist(dist)
    if find_python("--first") is None:
        raise FailedError("build the wheels: no Python was found")
    for kind, (which, target, platform) in KINDS.items():
        if kind not in kinds:
            continue
        python, why = find_python(which), _missing(target)
        if python is None or why:
            say(f"   no wheel for {platform} ({kind}): {why or 'no such Python was found'}")
            continue
        if target == MUSL:
            _folder(tree).joinpath(LIBRARY).unlink(missing_ok=True)  # it stands on glibc's malloc
        else:
            _preload(tree, target)
        _wheel(tree, dist, python, target, platform)
    if "sdist" not in kinds:
        for archive in dist.glob("*.tar.gz"):
            archive.unlink()


def _sdist(dist: Path) -> Path:
    """Pack the sdist and unpack it, always at the same place, so that cargo finds what it built before."""
    say("== the sdist")
    run([tool("maturin"), "sdist", "--out", dist], "pack the sdist")
    (archive,) = dist.glob("firsttouch-*.tar.gz")
    tree = unpacked(archive, WORK / "tree")
    if readme.name_repository(tree):
        run([tool("maturin"), "sdist", "--out", dist], "pack the sdist with PyPI's readme", cwd=tree)
    else:
        say("   Cargo.toml names no repository, so PyPI could not follow the links of the readme")
    return tree


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack the sdist, and date its files: maturin's are of 2006, and cargo would go on with what it built before."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(archive, folder, filter="data")
    (tree,) = folder.iterdir()
    for path in tree.rglob("*"):
        path.touch()
    return tree


def _folder(tree: Path) -> Path:
    return tree / "python" / "firsttouch" / "_lib"


def _preload(tree: Path, target: str) -> None:
    """Build the library for other programs against the same old glibc as the module."""
    say(f"== {LIBRARY} for {target}, glibc {GLIBC}")
    command = [tool("cargo-zigbuild"), "zigbuild", "--release", "--locked", "--quiet", "--target", f"{target}.{GLIBC}"]
    run(
        [*command, "--package", "firsttouch-preload"],
        "build the preloaded library",
        cwd=tree,
        environment=_environment(target),
    )
    _folder(tree).mkdir(exist_ok=True)
    shutil.copy(WORK / "cargo" / target / "release" / LIBRARY, _folder(tree))
    elf.set_initfirst(_folder(tree) / LIBRARY)


def _wheel(tree: Path, dist: Path, python: Path, target: str, platform: str) -> None:
    say(f"== a wheel for {platform}, built for {python}")
    command = [tool("maturin"), "build", "--quiet", "--release", "--locked", "--zig", "--target", target]
    options = ["--compatibility", platform, "--interpreter", python, "--out", dist]
    if target != MUSL:
        options += ["--", "-C", f"link-arg={_unwinder(target)}"]
    run([*command, *options], f"build the wheel for {platform}", cwd=tree, environment=_environment(target))


def _unwinder(target: str) -> str:
    """Return the unwinder that pthread_exit uses, with which CPython before 3.14 ends daemon threads.

    zig links one of its own in its place, whose records differ: the first of our frames that is unwound then crashes.
    """
    return run([ARM_COMPILER if target == ARM else "cc", "-print-file-name=libgcc_s.so.1"], "find libgcc_s").strip()


def _environment(target: str) -> dict[str, str]:
    """Return variables for cargo: a folder apart from other builds, and zig of this environment."""
    import os

    path = f"{tool('python').parent}{os.pathsep}{os.environ['PATH']}"
    # 64-bit ARM has pages of 4 to 64 KiB: what jemalloc is built for serves smaller ones, too.
    pages = {"JEMALLOC_SYS_WITH_LG_PAGE": "16"} if target == ARM else {}
    return {"CARGO_TARGET_DIR": str(WORK / "cargo"), "PATH": path, **pages}


def _missing(target: str) -> str | None:
    """Return what is missing to compile for a target; None if nothing is, which may take a download by rustup."""
    if target == ARM and shutil.which(ARM_COMPILER) is None:
        return f"there is no {ARM_COMPILER} (Debian: apt-get install gcc-aarch64-linux-gnu)"
    if _has(target):
        return None
    if shutil.which("rustup") is None:
        return f"Rust's standard library for {target} is not installed, and there is no rustup to fetch it"
    done = subprocess.run(["rustup", "target", "add", target], capture_output=True, text=True, check=False)
    if done.returncode or not _has(target):
        return f"`rustup target add {target}` failed: {done.stderr.strip()}"
    return None


def _has(target: str) -> bool:
    from pathlib import Path

    folder = run(["rustc", "--print", "target-libdir", "--target", target], "ask rustc")
    return any(Path(folder.strip()).glob("libstd-*"))

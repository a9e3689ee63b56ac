"""Fetch and build the mallocs that users would preload today, into target/peers: `python -m benchmarks.peers`.

The sources of jemalloc and of Google's tcmalloc come with crates, which build them; a package for Python has mimalloc.
Each is the newest that is there, and stays until the folder is removed. With the folder in LD_LIBRARY_PATH, `firsttouch
compare --all` finds them as `python -m benchmarks` does.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "target" / "peers"

MANIFEST = """[package]
name = "peer"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[workspace]
[dependencies]
{crate} = {{ version = "*", features = {features} }}
"""


def built(name: str, crate: str, features: list[str], folder: Path) -> Path:
    """Return a library of all that a crate has compiled; `folder` is for the compiler."""
    (folder / "Cargo.toml").write_text(MANIFEST.format(crate=crate, features=json.dumps(features)))
    (folder / "lib.rs").touch()
    # The crate of tcmalloc leaves out malloc itself, as Rust has other names for it.
    environment = {**os.environ, "CXXFLAGS": "-UTCMALLOC_INTERNAL_METHODS_ONLY", "CARGO_TARGET_DIR": str(folder)}
    command = ["cargo", "build", "--quiet", "--release", "--message-format=json"]
    said = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    messages = [json.loads(line) for line in said.splitlines()]
    mine = next(each for each in messages if each["reason"] == "build-script-executed" and crate in each["package_id"])
    archive = max(Path(mine["out_dir"]).rglob(f"lib{name}*.a"))  # of two, the one with position-independent code
    version = re.findall(r"\d+\.\d+\.\d+", mine["package_id"])[-1]  # tcmalloc has none: it is the crate's
    library = folder / f"lib{name}.so.{version}"
    whole = ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive", "-pthread", "-ldl"]
    subprocess.run(["c++", "-shared", "-o", str(library), *whole], check=True)
    return library


def installed(name: str, package: str, folder: Path) -> Path:
    """Return a library that a package for Python brings; `folder` becomes an environment."""
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "pip", "--quiet", "install", package], check=True)
    (record,) = folder.rglob(f"{package.replace('-', '_')}-*.dist-info")
    library = next(folder.rglob(f"lib{name}.so"))
    return library.rename(library.with_suffix(f".so.{record.name.removesuffix('.dist-info').rpartition('-')[2]}"))


PEERS: dict[str, Callable[[Path], Path]] = {
    "mimalloc": lambda folder: installed("mimalloc", "cmeel-mimalloc", folder),
    "jemalloc": lambda folder: built(
        "jemalloc", "tikv-jemalloc-sys", ["unprefixed_malloc_on_supported_platforms"], folder
    ),
    "tcmalloc": lambda folder: built("tcmalloc", "libtcmalloc-sys", [], folder),
}


def fetch() -> None:
    """Fetch those that are not there, and say which cannot be had."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in PEERS.items():
        if any(FOLDER.glob(f"lib{name}.so.*")):
            continue
        print(f"fetching {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                library = make(Path(folder))
                checked = {**os.environ, "LD_PRELOAD": str(library)}
                subprocess.run(["/bin/sh", "-c", "ls >/dev/null"], env=checked, check=True)
            except (OSError, StopIteration, ValueError, subprocess.CalledProcessError) as error:
                print(f"missing: {name}: {error}")
                continue
            (FOLDER / library.name).write_bytes(library.read_bytes())


if __name__ == "__main__":
    fetch()
    print(*(f"{path}" for path in sorted(FOLDER.glob("*.so.*"))), sep="\n")

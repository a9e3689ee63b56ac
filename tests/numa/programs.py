"""What runs in a guest: the Rust tests as its first process, with the libraries they are linked to."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.numa.initramfs import Initramfs


def rust_tests() -> Path:
    """The test program `numa` of the core crate, built."""
    command = ["cargo", "test", "--locked", "--quiet", "--package", "firsttouch", "--test", "numa", "--no-run"]
    done = subprocess.run([*command, "--message-format=json"], stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = [message["executable"] for message in messages if message.get("target", {}).get("name") == "numa"]
    return Path(found[-1])


def libraries(program: Path) -> list[Path]:
    """The shared libraries that a program or library needs, the loader included."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", listed)]


def with_rust_tests(archive: Path) -> None:
    """An archive whose first process is the test program."""
    program, files = rust_tests(), Initramfs()
    files.add("init", program, executable=True)
    for library in libraries(program):
        files.add(str(library), library.resolve(), executable=True)
    files.write(archive)

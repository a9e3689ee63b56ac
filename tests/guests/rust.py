"""The Rust test programs that guests run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def programs(options: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Build what `cargo test` would run with these options; the programs by their names."""
    command = ["cargo", "test", "--locked", "--quiet", "--no-run", "--message-format=json", *options]
    environment = {**os.environ, **(environment or {})}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {message["target"]["name"]: Path(message["executable"]) for message in messages if message.get("executable")}

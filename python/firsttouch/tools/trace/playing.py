"""Replays a trace against allocators, each in its own process."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass
from typing import Any

from firsttouch.tools.measuring.starter import ending_with_us, helper


@dataclass(frozen=True)
class How:
    """What is written to blocks, in how many threads, and whether a trace may be truncated."""

    touch: str = "all"
    threads: bool = True
    incomplete: bool = False


class PlayError(Exception):
    """A replay failed; the message says why."""


def play(trace: str, allocator: str, how: How) -> dict[str, Any]:
    """Replay once; return the figures.

    ``peak_held`` is the growth of resident memory in bytes; ``allocator_peak_held`` is the allocator's own figure;
    ``fragmentation`` is the peak held divided by the peak in use.
    """
    request = {"trace": os.path.abspath(trace), "allocator": allocator, **asdict(how)}
    words = helper("-m", "firsttouch.tools.trace.player", json.dumps(request))
    environment = {name: text for name, text in os.environ.items() if name != "FIRSTTOUCH_RUN"}
    words = ending_with_us(words)
    # In a group of its own, so that Ctrl-C reaches only the command, which then ends it.
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=False, process_group=0)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise PlayError(f"{allocator}: the process that played it ended with status {done.returncode}") from None
    if "error" in answer:
        raise PlayError(f"{allocator}: {answer['error']}")
    return answer

"""Workers of the lab: processes of contenders that are asked again and again, while others wait."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.processes import Call, value, worker


def libraries() -> list[str]:
    """Return the shared libraries loaded here."""
    maps = Path("/proc/self/maps").read_text(errors="replace")
    return sorted({line.split()[-1] for line in maps.splitlines() if ".so" in line})


class Worker:
    """The process of one contender."""

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        self._is_checked = False
        self._process = subprocess.Popen(
            worker(contender),
            env=contender.full_environment(),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=None if sys.platform == "win32" else 0,  # Ctrl-C reaches only the command
        )

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.contender.name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def check(self) -> None:
        """Wait until it answers, and raise RuntimeError if it lacks its preloaded library."""
        self._is_checked = True
        stem = self.contender.environment.get("LD_PRELOAD", "").rsplit("/", 1)[-1].split(".so")[0]
        loaded = self.ask(Call("benchmarks.workers", "libraries"))
        if stem and not any(stem in path for path in loaded):
            raise RuntimeError(f"{stem} was not loaded into the worker of {self.name}")

    def ask(self, call: Call) -> Any:
        """Let the worker run, and wait for its reply."""
        if not self._is_checked:
            self.check()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(call.request)
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.name} ended with status {self._process.wait()}")
        return value(line, self.contender)

"""Rounds interleaved between contenders: only one worker runs at a time, the others wait on their pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.starter import end_with, ending_with_us, helper


@dataclass(frozen=True)
class Call:
    """A function that workers call, by name."""

    module: str
    function: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])


TOUCH = "firsttouch._internal.process_memory", "touch"


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


class Worker:
    """The process of one contender."""

    def __init__(self, contender: Contender) -> None:
        command = helper("-m", "firsttouch.tools.measuring.worker")
        if contender.install:
            command += ["--install"] if contender.install is True else ["--install", contender.install]
        self.name = contender.name
        self._preload = contender.environment.get("LD_PRELOAD", "")
        self._hello: dict[str, Any] = {}
        try:
            with _ctrl_c_waits():  # an interrupt must not leave a started worker behind
                self._process = subprocess.Popen(
                    ending_with_us(command),
                    env=contender.full_environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    process_group=0,  # Ctrl-C reaches only the command, which then ends its workers
                )
        except KeyboardInterrupt as interrupt:
            self.__exit__(KeyboardInterrupt, interrupt, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def hello(self) -> dict[str, Any]:
        """Return the worker's first message, once it is ready; several workers can start at the same time."""
        if not self._hello:
            self._hello = self._read()
            stem = self._preload.rsplit("/", 1)[-1].split(".so")[0]
            if not any(stem in path for path in self._hello["libraries"]):
                raise RuntimeError(f"{self._preload} was not loaded into the worker of {self.name}")
        return self._hello

    def ask(self, call: Call) -> dict[str, float]:
        """Let the worker run, and wait for its reply."""
        self.hello()
        message = {
            "module": call.module,
            "function": call.function,
            "arguments": call.arguments,
            "path": sys.path,  # the function may be importable only in this process
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        reply: dict[str, float] = self._read()["value"]
        return reply

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.name} ended with status {self._process.wait()}")
        message: dict[str, Any] = json.loads(line)
        if "error" in message:
            raise RuntimeError(f"in the worker of {self.name}:\n{message['error']}")
        return message


def forked(function: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Call it in a child process. Raises :exc:`RuntimeError` with the child's traceback, or with its wait status."""
    read, write = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            end_with(parent)
            message = {"value": function()}
        except BaseException:  # none of the parent's code may continue here
            message = {"error": traceback.format_exc()}  # type: ignore[dict-item]
        with os.fdopen(write, "w") as pipe:
            json.dump(message, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if not text:
        raise RuntimeError(f"a forked measurement ended without an answer (wait status {status})")
    answer: dict[str, dict[str, float]] = json.loads(text)
    if "error" in answer:
        raise RuntimeError(f"in a forked measurement:\n{answer['error']}")
    return answer["value"]

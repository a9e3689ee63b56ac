"""Rounds interleaved between contenders: only one worker runs at a time, the others wait on their pipes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np

from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.starter import end_with, ending_with_us, helper
from firsttouch.tools.measuring.statistics import Matrix


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


@dataclass(frozen=True)
class Plan:
    """Generations of fresh processes, each asked for some rounds, because layouts differ between processes."""

    generations: int = 4
    rounds: int = 4

    @staticmethod
    def whole_programs(quick: bool) -> Plan:
        """Return a plan in which a process answers once and ends."""
        return Plan(2 if quick else 15, 1)

    @staticmethod
    def steady(quick: bool) -> Plan:
        """Return a plan in which processes are asked repeatedly."""
        return Plan(2, 2) if quick else Plan()


class Samples:
    """All replies, by contender, generation and round."""

    def __init__(self) -> None:
        self.replies: dict[str, list[list[dict[str, float]]]] = {}

    def add(self, name: str, generation: int, reply: dict[str, float]) -> None:
        """Record one reply."""
        rows = self.replies.setdefault(name, [])
        if len(rows) <= generation:
            rows.append([])
        rows[generation].append(reply)

    def column(self, contender: Contender | str, key: str) -> Matrix:
        """Return one figure of a contender's replies, generations by rounds."""
        name = contender if isinstance(contender, str) else contender.name
        return np.array([[reply[key] for reply in row] for row in self.replies[name]], float)

    def ratio(self, of: Contender | str, to: Contender | str, key: str) -> Matrix:
        """Return per-round ratios of a figure between two contenders."""
        return self.column(of, key) / self.column(to, key)


def collect(
    contenders: Sequence[Contender], call: Call, plan: Plan, footprint: int = 0, alone: bool = False
) -> Samples:
    """Ask every contender in every round, in an order that is shuffled anew each time.

    `footprint` is the number of bytes that a worker can use: each touches as many beforehand. With `alone`, only one
    process exists at a time.
    """
    samples = Samples()
    shuffle = random.Random(0)
    touch = Call(*TOUCH, {"nbytes": footprint})
    for generation in range(plan.generations):
        order = shuffle.sample(list(contenders), len(contenders))
        if alone:
            for contender in order:
                with Worker(contender) as worker:
                    worker.ask(touch)
                    for _ in range(plan.rounds):
                        samples.add(worker.name, generation, worker.ask(call))
            continue
        with ExitStack() as stack:
            workers = [stack.enter_context(Worker(contender)) for contender in order]
            for worker in workers:
                worker.hello()
            for worker in workers:
                worker.ask(touch)
            for _ in range(plan.rounds):
                for worker in shuffle.sample(workers, len(workers)):
                    samples.add(worker.name, generation, worker.ask(call))
    return samples


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

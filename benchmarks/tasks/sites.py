"""One whole program with a memory of its own for each of its lines, and the processor time of each."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from contextlib import AbstractContextManager
from types import CodeType
from typing import Any

import firsttouch as ft

MEMORY = "BENCHMARKS_MEMORY"
SCRATCH = "scratch()"


def chosen(default: str, lines: dict[int, str] | None = None) -> dict[str, str]:
    """Return the environment that makes `measure` use these memories: allocator expressions, or `SCRATCH`."""
    return {MEMORY: json.dumps([default, lines or {}])}


class Sites:
    """The line that runs: changes the memory with it, and notes the processor time of all threads meanwhile.

    Memory that one line takes and another writes for the first time is faulted in at the cost of the latter.
    """

    def __init__(self, default: str, lines: dict[str, str]) -> None:
        made: dict[str, AbstractContextManager[Any]] = {}
        for name in {default, *lines.values()}:
            made[name] = ft.scratch() if name == SCRATCH else ft.use(name)
        self._default = made[default]
        self._memories = {int(line): made[name] for line, name in lines.items()}
        self._line, self._memory = 0, self._default
        self._memory.__enter__()
        self.spent: dict[int, int] = {}
        self._since = time.process_time_ns()

    def go(self, line: int) -> None:
        """End the line that ran, and begin another; what this takes belongs to neither."""
        now = time.process_time_ns()
        self.spent[self._line] = self.spent.get(self._line, 0) + now - self._since
        memory = self._memories.get(line, self._default)
        if memory is not self._memory:
            self._memory.__exit__(None, None, None)
            self._memory = memory
            memory.__enter__()
        self._line = line
        self._since = time.process_time_ns()

    def end(self) -> None:
        """End the last line."""
        self.go(0)
        self._memory.__exit__(None, None, None)


def measure(program: str) -> dict[str, float]:
    """Return a program's result, and the processor seconds of each line and of all."""
    sites = Sites(*json.loads(os.environ[MEMORY]))
    module = importlib.import_module(f"benchmarks.programs.{program}")
    watch, events = sys.monitoring, sys.monitoring.events

    def begins(code: CodeType, line: int) -> object:
        if code.co_filename != module.__file__:
            return watch.DISABLE
        sites.go(line)
        return None

    def returns(code: CodeType, _offset: int, _value: object) -> object:
        if code.co_filename != module.__file__:
            return watch.DISABLE
        caller = sys._getframe(2)  # what it does after the call is its own line's again
        if caller.f_code.co_filename == module.__file__:
            sites.go(caller.f_lineno)
        return None

    watch.use_tool_id(watch.PROFILER_ID, __name__)
    watch.register_callback(watch.PROFILER_ID, events.LINE, begins)
    watch.register_callback(watch.PROFILER_ID, events.PY_RETURN, returns)
    sites.go(0)  # the imports end here
    sites.spent.clear()
    watch.set_events(watch.PROFILER_ID, events.LINE | events.PY_RETURN)
    try:
        result = module.run()
    finally:
        watch.set_events(watch.PROFILER_ID, 0)
        watch.free_tool_id(watch.PROFILER_ID)
        sites.end()
    lines = {str(line): spent / 1e9 for line, spent in sites.spent.items() if line}
    return {"result": result, "seconds": sum(lines.values()), **lines}

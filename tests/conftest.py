"""Uninstalls after each test what the test installed in this process, and lets Ctrl-C reach what tests start.

On Windows it leaves out what is about something that Windows does not have, and says what and why at the end.
"""

import gc
import signal
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

_PACKAGES = "packages that are not installed there"
_PROCESSES = "a process or more for each test, which takes wine seconds; tests/windows has the commands"
#: Rooms and files that are left out on Windows as a whole, and why; elsewhere the marker `linux` decides.
LEFT_OUT = {
    "benchmarks": "programs of this checkout, with Linux's compilers and counters",
    "c": "the library as Linux has it",
    **{f"cli/test_{name}.py": "bash, signals, fork, /proc" for name in ("bench", "completion", "info", "waiting")},
    **{
        f"cli/test_{name}.py": _PROCESSES
        for name in ("allocator", "children", "foreign_code", "hook", "report", "report_files", "start_files")
    },
    "company": "LD_PRELOAD",
    **{f"compare/test_{name}.py": "shells, signals, fork" for name in ("command", "processes")},
    **dict.fromkeys(("dask", "docs", "examples", "numba"), _PACKAGES),
    "experiments": "matplotlib, and the zero page",
    "frame": "Linux's wheel",
    "free_threading": "Pythons that are not there",
    "guarantees": "fork, signals, limits of processes",
    "limits": "limits of processes, control groups, overcommit",
    "memory_out": "fork, and limits of processes",
    "placement": "/proc, transparent huge pages, nodes",
    "plugin": "fork",
    "preload": "LD_PRELOAD",
    **{f"process/test_{name}.py": "fork, and the C library by its names" for name in ("anywhere", "workers")},
    **{f"shared/test_{name}.py": "/proc" for name in ("lifetime", "opening", "processes")},
    "sight": "mappings of its own, and the zero page",
    "structure": "mypy, and the files of the checkout",
    "trace/test_children.py": "fork",
    "trace/test_lines.py": "advise, which stands on glibc",
    "trust": "fork",
    "why": "/proc",
}
_left_out: Counter[str] = Counter()

if sys.platform == "win32":
    collect_ignore = list(LEFT_OUT)

    def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = []
        for item in items:
            if mark := item.get_closest_marker("linux"):
                _left_out[f"{item.path.parent.name}: {mark.args[0]}"] += 1
            else:
                kept.append(item)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("left out on Windows")
        for reason in dict.fromkeys(LEFT_OUT.values()):
            rooms = ", ".join(room for room, why in LEFT_OUT.items() if why == reason)
            terminalreporter.write_line(f"{rooms}: {reason}")
        for what, count in sorted(_left_out.items()):
            terminalreporter.write_line(f"{count} of {what}")


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in background jobs; children inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _frozen() -> None:
    gc.freeze()  # tests collect often, and need not look at what was there before them


@pytest.fixture(autouse=True)
def _uninstalled_after() -> Iterator[None]:
    yield
    import firsttouch as ft

    if ft.is_installed():
        ft.uninstall()

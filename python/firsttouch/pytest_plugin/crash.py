"""Reports about a test whose process crashed."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Literal

import pytest
from _pytest.skipping import evaluate_xfail_marks, xfailed_key

if TYPE_CHECKING:
    from firsttouch.pytest_plugin.child import Run

#: The numbers of a fault, as written by ``_firsttouch.watch_faults``: the signal; the address; 1 for a read, 2 for a
#: write, 0 if the processor does not tell; and of the guarded array next to it: its address, its size (0 if there is
#: none), and whether it was freed.
_DID = {0: "read or wrote", 1: "read", 2: "wrote"}

Phase = Literal["setup", "call", "teardown"]


def reports_of(item: pytest.Item, run: Run) -> list[pytest.TestReport]:
    """Return the reports of a run; if it did not complete, with a failed one for the phase in which it crashed."""
    if run.whole:
        return run.reports
    phases: tuple[Phase, ...] = ("setup", "call", "teardown")
    done = {report.when for report in run.reports}
    when: Phase = next((phase for phase in phases if phase not in done), "teardown")
    text = what_happened(run)
    call: pytest.CallInfo[None] = pytest.CallInfo.from_call(lambda: pytest.fail(text, pytrace=False), when=when)
    call.duration = run.seconds
    item.stash[xfailed_key] = evaluate_xfail_marks(item)
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    report.sections += _captured(item.config, when)
    return [*run.reports, report]


def what_happened(run: Run) -> str:
    """Return one sentence, and the test's Python stack."""
    return "\n\n".join(part for part in (_sentence(run), _own_frames(run.trace)) if part)


def _sentence(run: Run) -> str:
    if run.stopped:
        return run.stopped
    if run.status >= 0:
        return f"the test ended its process, with exit status {run.status}"
    name = signal.Signals(-run.status).name
    if not run.fault:
        return f"the test's process died of {name}"
    _, address, way, begin, asked, freed = run.fault
    did = _DID.get(way, _DID[0])
    if not asked:
        return f"the test's process died of {name}: it {did} at {address:#x}, where there is no memory"
    array = f"an array of {asked} bytes"
    if freed:
        return f"use after free: {did} byte {address - begin} of {array} that was freed ({name})"
    if address < begin:
        return f"out of bounds: {did} {begin - address} bytes before {array} ({name})"
    beyond = address - begin - asked
    where = "right behind" if beyond < 64 else f"{beyond} bytes behind"
    return f"out of bounds: {did} {where} {array} ({name})"


def _own_frames(trace: str) -> str:
    """Return the test's part of faulthandler's traceback: the frames above pytest's first one."""
    frames = []
    for line in trace.splitlines():
        if not line.startswith("  File "):
            continue
        if "/_pytest/" in line or "/pluggy/" in line:
            break
        frames.append(line)
    return "Where it was, the innermost first:\n" + "\n".join(frames) if frames else ""


def _captured(config: pytest.Config, when: str) -> list[tuple[str, str]]:
    """Return the output of the dead process, from the files that pytest captures into."""
    manager = config.pluginmanager.getplugin("capturemanager")
    if manager is None:
        return []
    names = ("stdout", "stderr")
    texts = manager.read_global_capture()
    return [(f"Captured {name} {when}", text) for name, text in zip(names, texts, strict=False) if text]

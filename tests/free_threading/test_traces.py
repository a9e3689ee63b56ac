"""Traces that threads begin and end at once: one is recorded at a time, and each that was recorded is whole."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from firsttouch import _firsttouch
from tests.programs import ask

pytestmark = pytest.mark.quick

PROGRAM = """
import json
from pathlib import Path
from tests.free_threading.test_traces import record
print(json.dumps(record(Path({folder!r}), 2.0)))
"""


def record(folder: Path, seconds: float) -> list[int]:
    """How many traces each of four threads recorded."""
    until, counts = time.monotonic() + seconds, [0] * 4
    failed: list[BaseException] = []

    def work(number: int) -> None:
        file = str(folder / f"{number}.ft")
        try:
            while time.monotonic() < until:
                try:
                    _firsttouch.trace_begin(file, [])
                except FileExistsError:
                    continue
                np.ones(20_000)
                done = _firsttouch.trace_end()
                if done is not None:
                    counts[number] += 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return counts


def test_traces_begun_and_ended_in_threads(tmp_path: Path) -> None:
    counts: list[int] = ask(PROGRAM.format(folder=str(tmp_path)), prologue="")
    assert sum(counts) > 0

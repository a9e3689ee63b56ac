"""Random programs on scratch memory: no byte of a live array changes. FIRSTTOUCH_STRESS_STEPS sets their length."""

import contextvars
import os
import threading

import pytest

from tests.scratch.random_programs import Program

STEPS = int(os.environ.get("FIRSTTOUCH_STRESS_STEPS", "2000"))
SEED = int(os.environ.get("FIRSTTOUCH_STRESS_SEED", "1"))


@pytest.mark.parametrize("debug", [False, True])
def test_one_thread(debug: bool) -> None:
    program = Program(SEED, debug=debug)
    context = contextvars.copy_context()
    context.run(program.go, STEPS)
    context.run(program.finish)


def test_threads_that_hand_arrays_over() -> None:
    failed: list[BaseException] = []
    shared: list[object] = []

    def run(seed: int) -> None:
        try:
            program = Program(seed, shared)
            program.go(STEPS // 4)
            program.finish()
        except BaseException as error:  # the main thread tells of it
            failed.append(error)

    threads = [threading.Thread(target=run, args=(SEED + number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forks() -> None:
    program = Program(SEED)
    context = contextvars.copy_context()
    for _ in range(max(1, STEPS // 500)):
        context.run(program.go, 100)
        context.run(program.forked)
    context.run(program.finish)

"""Scratch memory of asyncio tasks: each task has a buffer of its own, which is freed with the task.

A task may open a scope between two awaits; arrays that it keeps beyond the scope are copied by hand, or returned by a
decorated function.
"""

import asyncio
from typing import Any

import numpy as np

import firsttouch as ft

Array = np.ndarray[Any, np.dtype[np.float64]]


@ft.scratch
def spectrum(signal: Array) -> Array:
    """Compute with four temporaries in the calling task's scratch memory; the result is copied."""
    window = np.hanning(len(signal))
    centred = signal - signal.mean()
    transformed = np.fft.rfft(centred * window)
    power: Array = transformed.real**2 + transformed.imag**2
    return power


async def station(number: int, buffers: dict[int, ft.buffers.Buffer]) -> int:
    """Process three blocks of a signal; return the strongest frequency."""
    total = np.zeros(2049)
    for block in range(3):
        time = np.arange(4096) / 4096 + block
        total += spectrum(np.sin(2 * np.pi * (100 + number) * time))
        await asyncio.sleep(0)  # other tasks may run here: no scope is open
    buffers[number] = ft.buffers.default_buffer()
    assert ft.buffers.default_buffer().used == 0
    return int(total.argmax())


async def main() -> None:
    """Run four stations concurrently, and show how many buffers they had."""
    buffers: dict[int, ft.buffers.Buffer] = {}
    strongest = await asyncio.gather(*(station(number, buffers) for number in range(4)))
    print("the strongest frequencies:", strongest)
    print("buffers:", len({id(buffer) for buffer in buffers.values()}))

    with ft.scratch() as scope:  # of the task that runs main()
        steps = scope.empty(1000)
        steps[:] = np.arange(1000.0)
        steps *= 0.5
        print("another buffer:", scope.buffer not in buffers.values(), "- and the last step is", steps[-1])


if __name__ == "__main__":
    asyncio.run(main())

"""Scratch memory of asyncio tasks: each has a buffer of its own, which is gone when the task is.

Between two awaits a task may open a scope; the arrays that it keeps beyond that are copied out of it by hand, or come
from a decorated function.
"""

import asyncio
from typing import Any

import numpy as np

import firsttouch as ft

Array = np.ndarray[Any, np.dtype[np.float64]]


@ft.scratch
def spectrum(signal: Array) -> Array:
    """Four temporaries in the scratch memory of the task that calls; the result is copied out."""
    window = np.hanning(len(signal))
    centred = signal - signal.mean()
    transformed = np.fft.rfft(centred * window)
    power: Array = transformed.real**2 + transformed.imag**2
    return power


async def station(number: int, buffers: dict[int, ft.buffers.Buffer]) -> int:
    """Three blocks of a signal; the strongest frequency of all."""
    total = np.zeros(2049)
    for block in range(3):
        time = np.arange(4096) / 4096 + block
        total += spectrum(np.sin(2 * np.pi * (100 + number) * time))
        await asyncio.sleep(0)  # another task may run here: no scope is open
    buffers[number] = ft.default_buffer()
    assert ft.default_buffer().used == 0
    return int(total.argmax())


async def main() -> None:
    """Four stations at once, and how many buffers they had."""
    buffers: dict[int, ft.buffers.Buffer] = {}
    strongest = await asyncio.gather(*(station(number, buffers) for number in range(4)))
    print("the strongest frequencies:", strongest)
    print("buffers:", len({id(buffer) for buffer in buffers.values()}))

    with ft.scratch() as scope:  # of the task that runs main()
        steps = scope.arange(1000.0)
        steps *= 0.5
        print("another buffer:", scope.buffer not in buffers.values(), "- and the last step is", steps[-1])


if __name__ == "__main__":
    asyncio.run(main())

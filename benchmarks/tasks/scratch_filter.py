"""The filter of examples/richardson_lucy.py, in each of its three ways."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from statistics import median as middle
from typing import Any

FILE = Path(__file__).parents[2] / "examples" / "richardson_lucy.py"
_made: dict[int, Any] = {}


def example() -> Any:
    """Import the example as a module."""
    spec = importlib.util.spec_from_file_location("richardson_lucy", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(size: int, seconds: float) -> dict[str, float]:
    """Return seconds per step of each way, in short alternating runs, excluding the first of each."""
    if size not in _made:
        module = example()
        every = module.ways((size, size))
        every["in scratch again"] = module.ft.scratch(module.step)
        _made[size] = module, every, module.blurred_image(size)
    module, every, image = _made[size]
    times: dict[str, list[float]] = {name: [] for name in every}
    end = time.perf_counter() + seconds * len(every)
    while time.perf_counter() < end or len(times["plainly"]) < 3:
        for name, step in every.items():
            start = time.perf_counter()
            module.sharpened(step, image, 3)
            times[name].append((time.perf_counter() - start) / 3)
    return {name: middle(row[1:]) for name, row in times.items()}

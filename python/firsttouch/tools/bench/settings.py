"""What the user of an experiment may choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nobody(_done: float) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Settings:
    """Given to each experiment's `run`."""

    quick: bool = False
    """A few sizes and rounds, in ten to twenty seconds."""
    sizes: tuple[int, ...] | None = None
    """Bytes of an array; `None`: what suits the experiment and the machine."""
    allocators: tuple[str, ...] = ()
    """More allocators to compare, as expressions that `install` takes; for the experiments that compare allocators."""
    progress: Callable[[float], None] = _nobody
    """Called with the part that is done, from 0 to 1."""

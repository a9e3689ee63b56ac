"""Rules of retention: how much may be held, and how long memory may be idle."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

SLACK = 2 << 20
#: A tick of the pool, in microseconds: memory decays at ticks.
EPOCH = 100_000
_SLOT, _SLOTS, _NEAR = 500_000, 16, 2


@dataclass
class Fixed:
    """A fixed part of the peak more than the peak, and a fixed time; `inf` means everything, or for ever."""

    name: str
    part: float
    seconds: float = 1.0

    def allowed(self, peak: int) -> float:
        """Return the bytes that may be held at a peak of the active bytes."""
        return peak * (1 + self.part) + SLACK

    def patience(self) -> float:
        """Return the ticks for which memory may be idle."""
        return self.seconds * 1e6 / EPOCH

    def gave_back(self, region: int, size: int, micros: int, decayed: bool) -> None:
        """Hear that idle memory was purged: because it was old, or to make room."""

    def took(self, region: int, size: int, peak: int, micros: int) -> None:
        """Hear that fresh memory was taken."""


@dataclass
class Learned(Fixed):
    """The pool's own rule: `adaptors/pool/retention.rs`."""

    most: float = 0.25
    longer: float = 1.8
    _extra: int = 0
    _patience: int = 0
    # By cause and region: when, rounded to half a second, and how much.
    _gone: list[list[deque[list[int]]]] = field(default_factory=lambda: [[deque(), deque()] for _ in range(2)])

    def allowed(self, peak: int) -> float:
        return super().allowed(peak) + min(self._extra, peak * self.most)

    def patience(self) -> float:
        return (self.longer if self._patience else self.seconds) * 1e6 / EPOCH

    def gave_back(self, region: int, size: int, micros: int, decayed: bool) -> None:
        self._gone[decayed][region].append([micros // _SLOT, size])
        if decayed:
            self._extra, self._patience = max(self._extra - size, 0), max(self._patience - size, 0)

    def took(self, region: int, size: int, peak: int, micros: int) -> None:
        regret = self._regretted(False, region, size, micros, _SLOTS)
        near = self._regretted(True, region, size - regret, micros, _NEAR)
        self._regretted(True, region, size - regret - near, micros, _SLOTS)
        self._extra = max(self._extra, min(self._extra + regret, int(peak * self.most)))
        self._patience = max(self._patience, min(self._patience + near, peak))

    def _regretted(self, decayed: bool, region: int, size: int, micros: int, reach: int) -> int:
        """Take up to `size` bytes off what was given back lately, the latest first; return how much there was."""
        gone, left = self._gone[decayed][region], size
        while gone and left and gone[-1][0] > micros // _SLOT - reach:
            part = min(gone[-1][1], left)
            gone[-1][1] -= part
            left -= part
            if not gone[-1][1]:
                gone.pop()
        return size - left

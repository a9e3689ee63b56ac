"""The figures of one program, computed from its record: for its page, the index and the tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from _firsttouch_start import units
from benchmarks.gallery.catalogue import Program
from firsttouch.tools.compare.comparison import Outcome, Row
from firsttouch.tools.compare.runs import Run, column
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.statistics import Estimate, around_median

DEFAULT, POOL = "the default", "pool()"
#: Estimated shares of the time below which `advise` says that there is nothing, and little, to gain.
NOTHING, LITTLE = 0.01, 0.05


@dataclass(frozen=True)
class Figures:
    """A record with what follows from it."""

    record: dict[str, Any]

    @property
    def outcome(self) -> Outcome:
        """The comparison as `compare` knew it."""
        compared = self.record["compare"]
        rows = [
            Row(
                Contender(row["name"], row["environment"], row["firsttouch"]),
                [Run(**run) for run in row["runs"]],
                row["failure"],
                row["remark"],
            )
            for row in compared["contenders"]
        ]
        return Outcome(rows, compared["rounds"], compared["started"], compared["seconds"], compared["cautions"])

    def runs(self, name: str) -> list[Run]:
        """The counted runs of a contender."""
        return next(row.runs for row in self.outcome.rows if row.contender.name == name)

    @property
    def gain(self) -> Estimate:
        """How many times as fast the program is on the pool, by the clock on the wall."""
        return next(Estimate(**row["speedup"]) for row in self.record["compare"]["contenders"] if row["name"] == POOL)

    @property
    def processor_gain(self) -> Estimate:
        """The same by processor time, which other programs on the machine disturb less."""
        plain, pooled = (column(self.runs(name), "processor") for name in (DEFAULT, POOL))
        ratios = plain / pooled
        return Estimate(float(np.median(ratios)), *around_median(ratios))

    @property
    def noise(self) -> Estimate:
        """The default compared with itself."""
        return Estimate(**self.record["compare"]["noise"])

    @property
    def measured(self) -> str:
        """Whether the program gains from the pool: `faster`, `slower` or `no difference`, as `compare` decides it."""
        for word in ("faster", "slower"):
            if POOL in self.record["compare"]["advice"][word]:
                return word
        return "no difference"

    @property
    def advised(self) -> str:
        """What `advise` said: `gain`, `little` or `nothing`."""
        share = self.record["advise"]["gain_share"]
        return "nothing" if share < NOTHING else "little" if share < LITTLE else "gain"

    @property
    def contradiction(self) -> str | None:
        """How the estimate and the measurement exclude each other, if they do."""
        if self.advised == "nothing" and self.measured == "faster":
            return "advise saw nothing to gain, and compare measured a gain"
        if self.advised == "gain" and (self.measured == "slower" or self.processor_gain.high < 1):
            return "advise promised a gain, and compare excludes one"
        return None


def median(runs: list[Run], name: str) -> float:
    """Return the median of a figure over the runs."""
    return float(np.median(column(runs, name)))


def kernel_share(runs: list[Run]) -> float:
    """Return the kernel's share of the processor time."""
    return median(runs, "system") / (median(runs, "system") + median(runs, "user"))


def facts(program: Program, figures: Figures) -> dict[str, str]:
    """Return the words that the reasons in programs.toml may quote."""
    plain, pooled, tuned = (figures.runs(name) for name in (DEFAULT, POOL, "tuned glibc"))
    faults = median(plain, "minor_faults"), median(pooled, "minor_faults"), median(tuned, "minor_faults")
    advised = figures.record["advise"]
    return {
        "faults": f"{faults[0]:,.0f}",
        "pool_faults": f"{faults[1]:,.0f}",
        "tuned_faults": f"{faults[2]:,.0f}",
        "faults_a_turn": f"{faults[0] / program.turns:,.0f}",
        "pool_faults_a_turn": f"{faults[1] / program.turns:,.0f}",
        "turns": f"{program.turns:,}",
        "kernel": units.share(kernel_share(plain), 1),
        "pool_kernel": units.share(kernel_share(pooled), 1),
        "system": units.seconds(median(plain, "system")),
        "pool_system": units.seconds(median(pooled, "system")),
        "user": units.seconds(median(plain, "user")),
        "pool_user": units.seconds(median(pooled, "user")),
        "peak": f"{median(plain, 'peak_bytes') / 2**20:,.0f} MiB",
        "pool_peak": f"{median(pooled, 'peak_bytes') / 2**20:,.0f} MiB",
        "arrays": f"{sum(line['count'] for line in advised['lines']):,}",
        "bytes": units.size(sum(line["bytes"] for line in advised["lines"])),
        "largest": units.size(max((line["bytes"] // max(1, line["count"]) for line in advised["lines"]), default=0)),
        "share": units.share(advised["gain_share"], 1),
        "array_kernel": units.share(advised["kernel_seconds"], advised["processor"]),
    }

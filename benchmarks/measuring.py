"""How the lab measures: rounds of processes, peers, bars and their intervals, and the tables as Markdown."""

from __future__ import annotations

import datetime
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from firsttouch._firsttouch import headroom
from firsttouch._internal import units
from firsttouch.tools.bench.common import KIB, MIB, ROOM, name
from firsttouch.tools.measuring.contenders import TUNED_GLIBC, Contender, preloaded
from firsttouch.tools.measuring.processes import ask
from firsttouch.tools.measuring.report import Table
from firsttouch.tools.measuring.statistics import Estimate, estimate

Column = npt.NDArray[np.float64]  # a figure of each round

SINGLE = 1.05  # no single size may certainly exceed this

#: What a program costs: seconds, the integral of its resident memory over time, its peak, and what is left at rest.
AXES = {"seconds": "time", "mib_seconds": "MiB seconds", "peak": "peak", "left": "left after 2 s"}
SAME = 1.02  # figures that differ by less are equal

NUMPY = Contender("NumPy")
FIRSTTOUCH = Contender("firsttouch", install=True)
AGAIN = Contender("firsttouch again", install=True)  # for A/A: the difference between two equal runs
EXPRESSIONS = tuple(int(mib * MIB) for mib in (1 / 16, 1 / 4, 1, 3.5, 8, 24, 40, 64, 128, 256))
QUICK = (256 * KIB, 8 * MIB)


def peers() -> list[Contender]:
    """Return what users may use instead of firsttouch."""
    return [TUNED_GLIBC, *preloaded()[0]]


def everyone() -> list[Contender]:
    """Return NumPy's default, firsttouch twice, and every peer."""
    return [NUMPY, FIRSTTOUCH, AGAIN, *peers()]


@dataclass(frozen=True)
class Verdict:
    """A target, the measured figure, and the conclusion that its interval allows."""

    bar: str
    figure: str
    outcome: str  # passed, failed, not shown, not measured


@dataclass
class Section:
    """What an experiment found, with what became of its bars."""

    name: str
    title: str
    asked: str
    tables: list[Table] = field(default_factory=list[Table])
    notes: list[str] = field(default_factory=list[str])
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    how: str = ""  # when, how long, quick or in full; set by `conduct`


def conduct(run: Callable[[], Section], quick: bool) -> Section:
    """Return the section that `run` returns, with its `how` filled in."""
    busy, start = os.getloadavg()[0], time.monotonic()
    section = run()
    kind = "A quick run, which only shows that the experiment works" if quick else "Measured in full"
    section.how = f"{kind}, {datetime.date.today().isoformat()}, in {time.monotonic() - start:.0f} s; "
    section.how += f"the load average was {busy:.2f} at the start."
    return section


def fitting(sizes: Sequence[int], arrays: int) -> tuple[list[int], list[str]]:
    """Return the sizes at which that many arrays fit into most of the free memory, and a note about the others."""
    room = int(headroom() * ROOM)
    left_out = [name(size) for size in sizes if size * arrays > room]
    notes = [f"Left out for lack of memory: {', '.join(left_out)}."] if left_out else []
    return [size for size in sizes if size * arrays <= room], notes


def median(figures: Column) -> Estimate:
    """Return the median with its interval."""
    return estimate(figures.tolist())


def geometric_mean(cells: Sequence[Column]) -> Estimate:
    """Return the geometric mean of cells, round by round, with its interval."""
    return median(np.exp(np.mean(np.log(cells), axis=0)))


class Samples:
    """All replies, by contender and round."""

    def __init__(self, contenders: Sequence[Contender]) -> None:
        self.replies: dict[str, list[dict[str, float]]] = {contender.name: [] for contender in contenders}

    def column(self, contender: Contender | str, key: str) -> Column:
        """Return one figure of a contender's replies."""
        name = contender if isinstance(contender, str) else contender.name
        return np.array([reply[key] for reply in self.replies[name]], float)

    def columns(self, key: str) -> dict[str, Column]:
        """Return a figure of every contender."""
        return {contender: self.column(contender, key) for contender in self.replies}

    def ratio(self, of: Contender | str, to: Contender | str, key: str) -> Column:
        """Return per-round ratios of a figure between two contenders."""
        return self.column(of, key) / self.column(to, key)


def libraries() -> list[str]:
    """Return the shared libraries loaded here."""
    maps = Path("/proc/self/maps").read_text(errors="replace")
    return sorted({line.split()[-1] for line in maps.splitlines() if ".so" in line})


def collect(
    contenders: Sequence[Contender], function: Callable[..., Any], rounds: int, footprint: int = 0, **arguments: Any
) -> Samples:
    """Ask a new process of every contender in every round, in an order that is shuffled anew each time."""
    for contender in contenders:
        stem = contender.environment.get("LD_PRELOAD", "").rsplit("/", 1)[-1].split(".so")[0]
        if stem and not any(stem in path for path in ask(contender, libraries)):
            raise RuntimeError(f"{stem} was not loaded into the process of {contender.name}")
    samples, shuffle = Samples(contenders), random.Random(0)
    for _ in range(rounds):
        for contender in shuffle.sample(list(contenders), len(contenders)):
            samples.replies[contender.name].append(ask(contender, function, footprint, **arguments))
    return samples


def against_best(ours: Column, peers: Mapping[str, Column]) -> Column:
    """Return per-round ratios to the best peer, chosen on the other half of the rounds to avoid picking luck."""
    ratios = np.empty_like(ours)
    first = np.arange(len(ours)) % 2 == 0
    for half in (first, ~first):
        best = max(peers, key=lambda name: float(np.median((ours / peers[name])[~half])))
        ratios[half] = (ours / peers[best])[half]
    return ratios


def judge(bar: str, limit: float, cells: Mapping[str, Column]) -> Verdict:
    """Return passed or failed if the intervals allow no other reading, otherwise not shown."""
    mean = geometric_mean(list(cells.values()))
    single = max(SINGLE, limit)
    estimates = {name: median(cell) for name, cell in cells.items()}
    above = [f"{name} {estimate}" for name, estimate in estimates.items() if estimate.low > single]
    if mean.low > limit or above:
        outcome = "failed"
    elif mean.high <= limit:
        outcome = "passed"
    else:
        outcome = "not shown"
    figure = f"geometric mean {mean}"
    if above:
        figure += f"; certainly above {single:g}: " + ", ".join(above)
    return Verdict(bar, figure, outcome)


def losses(ours: str, cells: Mapping[tuple[str, str], Column]) -> list[str]:
    """Return a sentence for each peer that beats us beyond the noise; the keys are (peer, where)."""
    beaten: dict[str, list[str]] = {}
    for (peer, where), ratios in cells.items():
        estimate = median(ratios)
        if estimate.low > 1.0:
            beaten.setdefault(peer, []).append(f"{where} ({estimate})")
    if not beaten:
        return [f"No peer beats {ours} here beyond the noise."]
    return [f"**{peer} beats {ours}** at {', '.join(places)}." for peer, places in beaten.items()]


def judge_times(
    section: Section,
    times: Mapping[str, Mapping[str, Column]],
    ours: tuple[Contender, Contender, Contender],
    rivals: Sequence[Contender],
    what: str = "",
) -> dict[str, dict[str, Column]]:
    """Add a table of seconds by case and contender, its verdict and losses; return the ratios by contender.

    `ours` is the contender that is judged, what it replaces, and its equal.
    """
    mine, default, equal = (each.name for each in ours)
    names = [rival.name for rival in rivals]
    cells = {other: {case: of[mine] / of[other] for case, of in times.items()} for other in (default, equal, *names)}
    best = {case: against_best(of[mine], {name: of[name] for name in names}) for case, of in times.items()}
    columns = {**cells, "best peer": best}
    table = Table(f"**{what or 'Time'}**", ["", f"{default}'s time", *columns])
    for case, of in times.items():
        row = [str(median(column[case])) for column in columns.values()]
        table.rows.append([case, units.seconds(median(of[default]).value), *row])
    means = [str(geometric_mean(list(column.values()))) for column in columns.values()]
    table.rows.append(["geometric mean", "", *means])
    section.tables.append(table)
    before = f"{what}: " if what else ""
    section.verdicts.append(judge(f"{before}at most the best peer's time", 1.0, best))
    beaten = {(name, case): cell for name in names for case, cell in cells[name].items()}
    section.notes += [f"{before}{loss}" for loss in losses(mine, beaten)]
    return cells


def both_axes(ours: str, rivals: Sequence[str], found: Mapping[str, Mapping[str, Mapping[str, Column]]]) -> Table:
    """Compare the four costs with each rival; `found` is by program, contender and axis.

    A program is a win where nothing is worse than the rival's for certain and something better, a loss where it is the
    other way round, and else a tie.
    """
    columns = ["of", *AXES.values(), "wins, ties, losses"]
    table = Table(f"**Time and memory together**, of {ours}, divided by the row's: geometric means", columns)
    for rival in rivals:
        ratios = {axis: [each[ours][axis] / each[rival][axis] for each in found.values()] for axis in AXES}
        outcomes = {"wins": 0, "ties": 0, "losses": 0}
        for of_program in zip(*ratios.values(), strict=True):
            estimates = [median(ratio) for ratio in of_program]
            worse, better = any(one.low > SAME for one in estimates), any(one.high < 1 / SAME for one in estimates)
            outcomes["ties" if worse == better else "losses" if worse else "wins"] += 1
        means = [str(geometric_mean(each)) for each in ratios.values()]
        table.rows.append([rival, *means, ", ".join(map(str, outcomes.values()))])
    return table


def table_markdown(table: Table) -> str:
    """Return the table as Markdown; pipes in cells are escaped."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    body = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return f"{table.title}\n\n{body}\n" if table.title else body + "\n"


def markdown(section: Section) -> str:
    """Return a section as Markdown."""
    parts = [f"## {section.title}", "", f"Asked: {section.asked}", ""]
    if section.verdicts:
        rows: list[Sequence[str]] = [(v.bar, v.figure, f"**{v.outcome}**") for v in section.verdicts]
        parts += [table_markdown(Table("", ("bar", "got", "outcome"), rows))]
    parts += [table_markdown(table) for table in section.tables]
    parts += [f"- {note}" for note in section.notes]
    return "\n".join([*parts, "", f"*{section.how}*", ""])

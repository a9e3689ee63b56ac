"""The outcome of a comparison as sentences, a table, notes, a picture and plain data.

Sentences come first; they may say "no difference" (:func:`firsttouch.tools.measuring.statistics.difference` decides).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from firsttouch._internal import units
from firsttouch.tools.compare.comparison import FEWEST, Outcome, Row, speedup
from firsttouch.tools.measuring.contenders import AGAIN, DEFAULT, left_out
from firsttouch.tools.measuring.report import Picture, Table
from firsttouch.tools.measuring.statistics import Estimate, difference, margin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Memory beyond the default's that is worth reporting: as a fraction of it, and in bytes.
_MORE, _MUCH = 1.25, 32 << 20


@dataclass(frozen=True)
class Standing:
    """A contender compared with the default; `difference` as the rule says it, `ours` if firsttouch serves it."""

    name: str
    speedup: Estimate
    difference: str
    ours: bool

    @property
    def times(self) -> str:
        """How many times as fast it is, with the interval."""
        between = f"{self.speedup.low:.2f} to {self.speedup.high:.2f}"
        return f"{self.speedup.value:.2f} times as fast as the default (95 %: {between})"

    @property
    def loss(self) -> str:
        """How much longer it takes."""
        speeds = (self.speedup.value, self.speedup.high, self.speedup.low)
        middle, least, most = (100 * (1 / speed - 1) for speed in speeds)
        return f"{self.name} takes {middle:.0f} % (95 %: {least:.0f} to {most:.0f})"


@dataclass(frozen=True)
class Advice:
    """The sentences, and the contenders that are certainly faster or slower, the most extreme first."""

    sentences: tuple[str, ...]
    faster: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()


def standings(outcome: Outcome, time: str = "wall") -> list[Standing]:
    """Return every contender that can be compared, the fastest first, by "wall" or "processor" time."""
    noise, found = outcome.noise(time), list[Standing]()
    for row in outcome.others:
        ratio = speedup(outcome.default.runs, row.runs, time)
        found.append(Standing(row.contender.name, ratio, difference(ratio, noise), bool(row.contender.install)))
    return sorted(found, key=lambda one: -one.speedup.value)


def judged(outcome: Outcome) -> Advice:
    """Return what the figures allow to conclude.

    Processor time decides only where the clock does not; that what is faster needs more of it is said in any case.
    """
    if outcome.rounds < FEWEST:
        runs = units.count(outcome.rounds, "run")
        return Advice((f"No conclusion: {runs} of each cannot be distinguished from chance; use {FEWEST} or more.",))
    ordered = standings(outcome)
    if not ordered:
        return Advice(("No conclusion: every contender had a failed run.",))
    faster = [one for one in ordered if one.difference == "faster"]
    slower = [one for one in reversed(ordered) if one.difference == "slower"]
    best = next((one for one in ordered if one.ours), None)
    sentences = [_on(best, outcome)] if best else []
    sentences += _ahead(outcome, best, faster)
    if others := [one for one in slower if one is not best]:
        sentences.append(f"Slower here: {', '.join(one.loss for one in others)} longer than the default.")
    sentences += _by_processor_time(outcome, ordered)
    return Advice(tuple(sentences), tuple(one.name for one in faster), tuple(one.name for one in slower))


def _on(best: Standing, outcome: Outcome) -> str:
    """Return what is to be said of the best of firsttouch."""
    bar = f"{100 * margin(outcome.noise()):.0f} %"
    if best.difference == "faster":
        return f"{best.name} is faster here: {best.times}."
    if best.difference == "slower":
        return f"{best.loss} longer than the default: it is slower here."
    if best.difference == "unsure":
        return (
            f"No certain gain: {best.name} is {best.times}, which may be noise; differences below {bar} are none."
            " More runs, as with --budget 5m, may tell."
        )
    return f"No gain from {best.name}: it is {best.times}, and differences below {bar} are noise."


def _ahead(outcome: Outcome, best: Standing | None, faster: Sequence[Standing]) -> list[str]:
    """Return who else is faster than the default: clearly ahead of the best of firsttouch, or not."""
    rows = {row.contender.name: row for row in outcome.others}
    noise, clear, close = outcome.noise(), list[str](), list[str]()
    for one in faster:
        if one is best:
            continue
        lead = difference(speedup(rows[best.name].runs, rows[one.name].runs), noise) if best else "faster"
        if lead == "faster":
            beside = _beside(rows[best.name], rows[one.name]) if best else ""
            clear.append(f"{one.name} is faster here: {one.times}.{beside}")
        elif lead != "slower":
            close.append(f"{one.name} ({one.speedup.value:.2f} times)")
    return clear + ([f"Not clearly different from it: {units.listed(close)}."] if close else [])


def _beside(ours: Row, other: Row) -> str:
    """Return what a pool gives that a peer which is ahead of it does not."""
    if other.contender.install:
        return ""
    given = []
    own, theirs = (middle(row, "peak_bytes") for row in (ours, other))
    if own < theirs:
        given.append(f"a peak of {units.size(round(own))} instead of {units.size(round(theirs))}")
    if ours.left is not None and ours.left < theirs:
        given.append(f"{units.size(ours.left)} left of it at the end")
    given.append(f"none of its {units.count(len(other.contender.environment), 'environment variable')}")
    return f" What {ours.contender.name} gives that it does not: {units.listed(given)}."


def _by_processor_time(outcome: Outcome, ordered: Sequence[Standing]) -> list[str]:
    """Return a sentence on contenders that certainly need less or more processor time than the default.

    Where one is faster by the clock, only those are named that pay for it with more: they use a second processor, which
    other programs then do not have.
    """
    if not all(run.processor for row in outcome.rows for run in row.runs):
        return []
    certain = [one for one in standings(outcome, "processor") if one.difference in ("faster", "slower")]
    needs = {one: f"{one.name} needs {1 / one.speedup.value:.2f} times the default's" for one in certain}
    if any(one.difference in ("faster", "slower") for one in ordered):
        faster = {one.name for one in ordered if one.difference == "faster"}
        paid = [words for one, words in needs.items() if one.difference == "slower" and one.name in faster]
        return [f"But {units.listed(paid)} processor time."] if paid else []
    words = units.listed(list(needs.values()))
    return [f"By processor time, which other programs disturb less, {words}."] if needs else []


_COLUMNS = ("allocator", "time", "speed-up (95 %)", "processor", "faults", "peak")


def table(outcome: Outcome) -> Table:
    """Return the table, with a row for each contender."""
    title = f"Medians of {units.count(outcome.rounds, 'interleaved run')}"
    return Table(title, _COLUMNS, [_cells(row, outcome) for row in outcome.rows])


def _cells(row: Row, outcome: Outcome) -> Sequence[str]:
    name = row.contender.name
    if row.failure is not None:
        return name, "left out", *[""] * (len(_COLUMNS) - 2)
    against = "1"
    if row is not outcome.default:
        ratio = speedup(outcome.default.runs, row.runs)
        between = f" ({ratio.low:.2f}-{ratio.high:.2f})" if outcome.rounds >= FEWEST else ""
        against = f"{ratio.value:.2f}{between}"
    wall, processor = (units.seconds(middle(row, time)) for time in ("wall", "processor"))
    faults, peak = f"{middle(row, 'minor_faults'):,.0f}", f"{middle(row, 'peak_bytes') / (1 << 20):,.0f} MiB"
    return name, wall, against, processor, faults, peak


def middle(row: Row, name: str) -> float:
    """Return the median of a figure of a contender's runs."""
    return float(median(getattr(run, name) for run in row.runs))


def notes(outcome: Outcome, absent: Sequence[str]) -> list[str]:
    """Return notes that explain the table."""
    said = [f"{row.contender.name}: {words}" for row in outcome.rows for words in (row.failure, row.remark) if words]
    if absent:
        said.append(f"left out, because not installed: {', '.join(absent)}")
    if left := left_out():
        said.append(f"set in your environment, but not passed to any contender: {', '.join(left)}")
    for row in outcome.others:
        own, plain = (middle(one, "peak_bytes") for one in (row, outcome.default))
        if own >= _MORE * plain and own - plain >= _MUCH:
            said.append(f"{row.contender.name} needs {own / plain:.2f} times the memory of the default")
    major = sum(run.major_faults for row in outcome.rows for run in row.runs)
    if major:
        said.append(f"{units.count(major, 'fault')} in total waited for the disk (major faults)")
    if outcome.rounds < FEWEST:
        said.append(f"fewer than {FEWEST} rounds allow no interval")
    said.append(
        "processor is the time of all processes, which a busy machine disturbs least; faults are page faults; peak is"
        " the resident memory of the largest process; times include Python's start"
    )
    return said + outcome.cautions


def data(outcome: Outcome) -> dict[str, Any]:
    """Return everything in plain types, including each single run."""
    return {
        "started": outcome.started,
        "seconds": outcome.seconds,
        "rounds": outcome.rounds,
        "advice": asdict(judged(outcome)),
        "noise": asdict(outcome.noise()),
        "contenders": [
            {
                "name": row.contender.name,
                "environment": row.contender.environment,
                "firsttouch": row.contender.install,
                "failure": row.failure,
                "remark": row.remark,
                "speedup": asdict(speedup(outcome.default.runs, row.runs)) if row.runs else None,
                "runs": [asdict(run) for run in row.runs],
            }
            for row in outcome.rows
        ],
        "cautions": outcome.cautions,
    }


# Okabe and Ito's colours, which are distinguishable with any colour vision, on light and dark backgrounds.
_GREY, _OURS, _PEER = "#999999", "#0072b2", "#d55e00"


def picture(outcome: Outcome) -> Picture:
    """Plot the wall time of every single run, from zero, with the medians."""
    rows = [row for row in outcome.rows if row.runs]
    most = max(run.wall for row in rows for run in row.runs)
    scale, unit = (1.0, "s") if most >= 1 else (1000.0, "ms")

    def draw(axes: Axes) -> None:
        for at, row in enumerate(rows):
            color = _GREY if row.contender in (DEFAULT, AGAIN) else _OURS if row.contender.install else _PEER
            walls = [scale * run.wall for run in row.runs]
            places = [at + 0.3 * turn / max(1, len(walls) - 1) for turn in range(len(walls))]
            axes.scatter(walls, places, s=14, color=color, alpha=0.75, linewidths=0)
            axes.plot([median(walls)] * 2, [at - 0.08, at + 0.38], color=color, lw=2.2)
        axes.set(xlim=(0, 1.04 * most * scale), ylim=(len(rows) - 0.4, -0.6), xlabel=f"time, {unit}")
        axes.set_yticks([at + 0.15 for at in range(len(rows))], [row.contender.name for row in rows])
        axes.spines[["top", "right", "left"]].set_visible(False)

    return Picture("runs", "Time of every run, later runs below earlier ones", draw, height=0.9 + 0.5 * len(rows))

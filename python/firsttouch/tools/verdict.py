"""The outcome of a comparison as sentences, a table, notes, a picture and plain data.

Sentences come first; they may say "no difference" (:func:`firsttouch.tools.measuring.statistics.difference` decides).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from firsttouch._internal import units
from firsttouch.tools.comparison import FEWEST, Outcome, Row, speedup
from firsttouch.tools.measuring.contenders import AGAIN, DEFAULT, HUGE_GLIBC, POOL, PRELOADED, TUNED_GLIBC, left_out
from firsttouch.tools.measuring.report import Picture, Table
from firsttouch.tools.measuring.statistics import Estimate, difference, margin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Memory beyond the default's that is worth reporting: as a fraction of it, and in bytes.
_MORE, _MUCH = 1.25, 32 << 20


@dataclass(frozen=True)
class Advice:
    """The sentences, and the contenders that are certainly faster or slower, in the same order."""

    sentences: tuple[str, ...]
    faster: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()


def judged(outcome: Outcome) -> Advice:
    """Return what the figures allow to conclude: of the pool first, then of the others, the fastest first."""
    if outcome.rounds < FEWEST:
        runs = units.count(outcome.rounds, "run")
        return Advice((f"No conclusion: {runs} of each cannot be distinguished from chance; use {FEWEST} or more.",))
    if not outcome.others:
        return Advice(("No conclusion: every contender had a failed run.",))
    noise = outcome.noise()
    speeds = {row.contender.name: speedup(outcome.default.runs, row.runs) for row in outcome.others}
    pool = next((row for row in outcome.others if row.contender in (POOL, PRELOADED)), None)
    order = sorted(outcome.others, key=lambda row: (row is not pool, -speeds[row.contender.name].value))
    told = {row.contender.name: difference(speeds[row.contender.name], noise) for row in order}
    same = [name for name in told if told[name] == "none"]
    sentences: list[str] = []
    for row in order:
        name = row.contender.name
        speed = speeds[name]
        times = f"{speed.value:.2f} times as fast as the default (95 %: {speed.low:.2f} to {speed.high:.2f})"
        if told[name] == "faster":
            sentences.append(f"{name} is faster here: {times}.")
            if pool and row.contender in (TUNED_GLIBC, HUGE_GLIBC):
                sentences += _beside(pool, row, noise)
        elif told[name] == "unsure":
            sentences.append(
                f"It is not known whether {name} is faster: {times}. More runs, as with --runs 50, may tell."
            )
        elif told[name] == "slower":
            longer, least, most = (100 * (1 / ratio - 1) for ratio in (speed.value, speed.high, speed.low))
            more = f"{longer:.0f} % (95 %: {least:.0f} to {most:.0f})"
            sentences.append(f"{name} is slower here: it takes {more} longer than the default.")
        elif name == same[0]:
            names = units.listed([f"{name} ({speeds[name].value:.2f} times)" for name in same])
            bar = f"{100 * margin(noise):.0f} %"
            sentences.append(f"No difference: {names} as fast as the default; equals may seem {bar} apart.")
    sentences += _by_processor_time(outcome, told)
    faster, slower = (tuple(name for name in told if told[name] == word) for word in ("faster", "slower"))
    return Advice(tuple(sentences), faster, slower)


def _beside(pool: Row, glibc: Row, noise: Estimate) -> list[str]:
    """Return a sentence on what the pool gives that a tuned glibc does not, unless the pool is faster anyway."""
    if difference(speedup(pool.runs, glibc.runs), noise) == "slower":
        return []
    own, theirs = (middle(row, "peak_bytes") for row in (pool, glibc))
    given = [f"has a peak of {units.size(round(own))} instead of {units.size(round(theirs))}"] if own < theirs else []
    if pool.left and pool.left < min(own, theirs):
        given.append(f"keeps {units.size(pool.left)} of it at the end")
    given.append("needs no environment variables")
    return [f"Unlike it, {pool.contender.name} {units.listed(given)}."]


def _by_processor_time(outcome: Outcome, told: dict[str, str]) -> list[str]:
    """Return a sentence on contenders whose processor time, which other programs disturb less, tells something else."""
    if not all(run.processor for row in outcome.rows for run in row.runs):
        return []
    noise, needs = outcome.noise("processor"), list[str]()
    for row in outcome.others:
        ratio = speedup(outcome.default.runs, row.runs, "processor")
        if difference(ratio, noise) in {"faster", "slower"} - {told[row.contender.name]}:
            needs.append(f"{row.contender.name} needs {1 / ratio.value:.2f} times the default's")
    return [f"By processor time, {units.listed(needs)}."] if needs else []


_COLUMNS = ("allocator", "time", "speed-up (95 %)", "processor", "faults", "peak")


def table(outcome: Outcome) -> Table:
    """Return the table, with a row for each contender."""
    found = Table(f"Medians of {units.count(outcome.rounds, 'interleaved run')}", _COLUMNS)
    for row in outcome.rows:
        name = row.contender.name
        if row.failure is not None:
            found.rows.append([name, "left out", *[""] * (len(_COLUMNS) - 2)])
            continue
        against = "1"
        if row is not outcome.default:
            ratio = speedup(outcome.default.runs, row.runs)
            between = f" ({ratio.low:.2f}-{ratio.high:.2f})" if outcome.rounds >= FEWEST else ""
            against = f"{ratio.value:.2f}{between}"
        wall, processor = (units.seconds(middle(row, time)) for time in ("wall", "processor"))
        faults, peak = f"{middle(row, 'minor_faults'):,.0f}", f"{middle(row, 'peak_bytes') / (1 << 20):,.0f} MiB"
        found.rows.append([name, wall, against, processor, faults, peak])
    return found


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
    said.append(
        "processor is the time of all processes, which a busy machine disturbs least; faults are page faults; peak is"
        " the resident memory of the largest process; times include the program's start"
    )
    return said


def data(outcome: Outcome) -> dict[str, Any]:
    """Return everything in plain types, including each single run."""

    def plain(row: Row) -> dict[str, Any]:
        speed = asdict(speedup(outcome.default.runs, row.runs)) if row.runs else None
        about = {"failure": row.failure, "remark": row.remark, "speedup": speed}
        return asdict(row.contender) | about | {"runs": [asdict(run) for run in row.runs]}

    return {
        "started": outcome.started,
        "seconds": outcome.seconds,
        "rounds": outcome.rounds,
        "advice": asdict(judged(outcome)),
        "noise": asdict(outcome.noise()),
        "contenders": [plain(row) for row in outcome.rows],
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

    return Picture("Time of every run, later runs below earlier ones", draw, height=0.9 + 0.5 * len(rows))

"""The outcome of a comparison as sentences, a table, notes, a picture and plain data.

Sentences come first; they may say "no difference" (:func:`firsttouch.tools.measuring.statistics.difference` decides).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from _firsttouch_start import units
from firsttouch.tools.compare import candidates
from firsttouch.tools.compare.comparison import FEWEST, Outcome, Row
from firsttouch.tools.compare.trial import column, speedup
from firsttouch.tools.measuring.report import Picture, Table
from firsttouch.tools.measuring.starter import helper
from firsttouch.tools.measuring.statistics import LEAST, Estimate, difference, margin

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
    ours: bool = False

    @property
    def times(self) -> str:
        """How many times as fast it is."""
        return f"{self.speedup.value:.2f} times"

    @property
    def between(self) -> str:
        """The interval of that."""
        return f" (95 %: {self.speedup.low:.2f} to {self.speedup.high:.2f})"

    @property
    def loss(self) -> str:
        """How much longer it takes."""
        speeds = (self.speedup.high, self.speedup.value, self.speedup.low)
        least, middle, most = (100 * (1 / speed - 1) for speed in speeds)
        return f"{self.name} takes {middle:.0f} % (95 %: {least:.0f} to {most:.0f})"


@dataclass(frozen=True)
class Advice:
    """The sentences, and the contenders that are certainly faster or slower, the most extreme first."""

    sentences: tuple[str, ...]
    faster: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()


def standings(outcome: Outcome, time: str = "wall") -> list[Standing]:
    """Return every contender that can be compared, the fastest first, by "wall" or "processor" time."""
    equals = speedup(outcome.default.runs, outcome.rows[1].runs, time)
    found: list[Standing] = []
    for row in outcome.others:
        ratio = speedup(outcome.default.runs, row.runs, time)
        ours = candidates.served(row.contender)
        found.append(Standing(row.contender.name, ratio, difference(ratio, equals), ours))
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
    sentences = _faster(outcome, ordered, faster) if faster else [_none(outcome, ordered)]
    if slower:
        sentences.append(f"Slower here: {', '.join(one.loss for one in slower)} longer than the default.")
    sentences += _by_processor_time(outcome, ordered)
    return Advice(tuple(sentences), tuple(one.name for one in faster), tuple(one.name for one in slower))


def _none(outcome: Outcome, ordered: Sequence[Standing]) -> str:
    """Return that nothing is certainly faster."""
    size = margin(outcome.noise)
    slower = any(one.difference == "slower" for one in ordered)
    unsure = next((one for one in ordered if one.difference == "unsure"), None)
    if unsure:
        beyond = "" if size == LEAST else f" beyond the noise, which is {100 * size:.0f} % here"
        begin = "Nothing here is certainly faster than the default" if slower else f"No certain difference{beyond}"
        most = f"{unsure.name} is {unsure.times} as fast as the default{unsure.between}"
        return f"{begin}: {most}. More runs, as with --budget 5m, may tell."
    if slower:  # which is a difference
        return f"Nothing here is faster than the default by more than {100 * size:.0f} %."
    if size == LEAST:
        return f"No difference: nothing here is faster than the default by more than {100 * size:.0f} %."
    return (
        f"No difference beyond the noise, which is {100 * size:.0f} % here: nothing is faster than the default by"
        " more. More runs, as with --budget 5m, reveal smaller differences."
    )


def _faster(outcome: Outcome, ordered: Sequence[Standing], faster: Sequence[Standing]) -> list[str]:
    """Return what is fastest, what is not clearly behind it, and the best of firsttouch."""
    runs = {row.contender.name: row.runs for row in outcome.others}
    best = faster[0]
    said = [f"{best.name} is faster here: {best.times} as fast as the default{best.between}."]
    behind = {one.name: difference(speedup(runs[one.name], runs[best.name]), outcome.noise) for one in ordered}
    equal = [one for one in ordered if one is not best and behind[one.name] != "faster"]
    if equal:
        said.append(f"Not clearly behind it: {units.listed([f'{one.name} ({one.times})' for one in equal])}.")
    if not any(one.ours for one in (best, *equal)):
        ours = next((one for one in faster if one.ours), None)
        said.append(
            f"The best of firsttouch is {ours.name}: {ours.times}{ours.between}."
            if ours
            else "firsttouch itself gains nothing here."
        )
    return said


def _by_processor_time(outcome: Outcome, ordered: Sequence[Standing]) -> list[str]:
    """Return a sentence on contenders that certainly need less or more processor time than the default.

    Where one is faster, only those are named that pay for it with more: they use a second processor, which other
    programs then do not have. Where the clock is quiet and certain, processor time adds nothing.
    """
    if not all(run.processor for row in outcome.rows for run in row.runs):
        return []
    certain = [one for one in standings(outcome, "processor") if one.difference in ("faster", "slower")]
    needs = {one: f"{one.name} needs {1 / one.speedup.value:.2f} times the default's" for one in certain}
    if any(one.difference in ("faster", "slower") for one in ordered):
        faster = {one.name for one in ordered if one.difference == "faster"}
        paid = [words for one, words in needs.items() if one.difference == "slower" and one.name in faster]
        return [f"But {units.listed(paid)} processor time."] if paid else []
    noisy = margin(outcome.noise) != LEAST or any(one.difference == "unsure" for one in ordered)
    words = units.listed(list(needs.values()))
    return [f"By processor time, which other programs disturb less, {words}."] if needs and noisy else []


_COLUMNS = ("allocator", "wall time", "speed-up (95 %)", "processor time", "page faults", "peak memory")


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
        between = f" ({ratio.low:.2f} to {ratio.high:.2f})" if outcome.rounds >= FEWEST else ""
        against = f"{ratio.value:.2f}{between}"
    return (
        name,
        units.seconds(middle(row, "wall")),
        against,
        units.seconds(middle(row, "processor")),
        f"{middle(row, 'minor_faults'):,.0f}",
        f"{middle(row, 'peak_bytes') / (1 << 20):,.0f} MiB",
    )


def middle(row: Row, name: str) -> float:
    """Return the median of a figure of a contender's runs."""
    return float(median(getattr(run, name) for run in row.runs))


def notes(outcome: Outcome, absent: Sequence[str], loading: str | None) -> list[str]:
    """Return notes that explain the table."""
    said = [f"{row.contender.name}: {words}" for row in outcome.rows for words in (row.failure, row.remark) if words]
    if absent:
        said.append(f"left out, because not installed:  {', '.join(absent)}")
    if left := candidates.left_out():
        said.append(f"set in your environment, but not passed to any contender:  {', '.join(left)}")
    for row in outcome.others:
        own, plain = (middle(one, "peak_bytes") for one in (row, outcome.default))
        if own >= _MORE * plain and own - plain >= _MUCH:
            said.append(f"{row.contender.name} needs {own / plain:.2f} times the memory of the default")
    major = sum(run.major_faults for row in outcome.rows for run in row.runs)
    if major:
        said.append(f"{units.count(major, 'fault')} in total waited for the disk (major faults)")
    if loading is not None:
        said.append(loading)
    if outcome.rounds < FEWEST:
        said.append(f"fewer than {FEWEST} rounds allow no interval")
    said.append("peak memory is that of the largest process; times and faults include child processes")
    return said + outcome.cautions


def data(outcome: Outcome) -> dict[str, Any]:
    """Return everything in plain types, including each single run."""
    return {
        "started": outcome.started,
        "seconds": outcome.seconds,
        "rounds": outcome.rounds,
        "advice": asdict(judged(outcome)),
        "noise": asdict(outcome.noise),
        "contenders": [_of_row(row, outcome) for row in outcome.rows],
        "cautions": outcome.cautions,
    }


def _of_row(row: Row, outcome: Outcome) -> dict[str, Any]:
    return {
        "name": row.contender.name,
        "environment": row.contender.environment,
        "firsttouch": row.contender.install,
        "failure": row.failure,
        "remark": row.remark,
        "speedup": asdict(speedup(outcome.default.runs, row.runs)) if row.runs else None,
        "runs": [asdict(run) for run in row.runs],
    }


#: What a process loads for the default pool, and where an expression names the allocator.
LOADED = {
    False: "from _firsttouch_start import hook; hook.load().register()",
    True: "from firsttouch._internal import resolve",
}
_PROBE = "import numpy, time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
_TIMES = 3


def loading(outcome: Outcome) -> str | None:
    """Return a note on how long a process takes to load firsttouch; `None` if it serves none, or that fails."""
    kinds = {isinstance(row.contender.install, str) for row in outcome.rows if row.contender.install and row.runs}
    took = {kind: seconds for kind in sorted(kinds) if (seconds := _median_seconds(LOADED[kind])) is not None}
    said = [f"{units.seconds(seconds)}{' for an expression' * kind}" for kind, seconds in took.items()]
    return f"the figures of firsttouch include loading it: {', '.join(said)}, in each Python process" if said else None


def _median_seconds(code: str) -> float | None:
    took: list[float] = []
    for _ in range(_TIMES):
        probe = subprocess.run(
            helper("-c", _PROBE.format(code)), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if probe.returncode != 0:
            return None
        took.append(float(probe.stdout))
    return median(took)


# Okabe and Ito's colours, which are distinguishable with any colour vision, on light and dark backgrounds.
_DEFAULT, _OURS, _PEER = "#999999", "#0072b2", "#d55e00"


def picture(outcome: Outcome) -> Picture:
    """Plot the wall time of every single run, from zero."""
    rows = [row for row in outcome.rows if row.runs]

    def draw(axes: Axes) -> None:
        most = max(column(row.runs, "wall").max() for row in rows)
        scale, unit = (1.0, "s") if most >= 1 else (1000.0, "ms")
        for at, row in enumerate(rows):
            _strip(axes, row, at, scale)
        axes.axvline(scale * middle(rows[0], "wall"), color=_DEFAULT, lw=0.8, ls=":")
        axes.set_xlim(0, 1.04 * most * scale)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks([])
        axes.set_xlabel(f"wall time, {unit}")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)

    return Picture("runs", "Wall time of every run, later runs below earlier ones", draw, height=0.9 + 0.5 * len(rows))


def _strip(axes: Axes, row: Row, at: int, scale: float) -> None:
    color = _OURS if candidates.served(row.contender) else _PEER
    if row.contender in (candidates.DEFAULT, candidates.AGAIN):
        color = _DEFAULT
    walls = scale * column(row.runs, "wall")
    places = [at + 0.04 + 0.3 * turn / max(1, len(walls) - 1) for turn in range(len(walls))]
    axes.scatter(walls, places, s=14, color=color, alpha=0.75, linewidths=0)
    axes.boxplot(
        walls,
        positions=[at + 0.19],
        widths=0.4,
        orientation="horizontal",
        showfliers=False,
        manage_ticks=False,
        boxprops={"color": color},
        whiskerprops={"color": color},
        capprops={"color": color},
        medianprops={"color": color, "linewidth": 2.2},
    )
    axes.text(0.005, at - 0.12, row.contender.name, transform=axes.get_yaxis_transform(), va="bottom", fontsize=9)

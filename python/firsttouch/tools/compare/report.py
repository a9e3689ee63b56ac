"""The outcome of a comparison as sentences, a table, notes, a picture and plain data."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import asdict, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from _firsttouch_start import units
from firsttouch.tools.compare import candidates, verdict
from firsttouch.tools.compare.comparison import Outcome, Row
from firsttouch.tools.compare.runs import column, quartiles, speedup
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Table
from firsttouch.tools.measuring.starter import helper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = ("allocator", "wall time", "speed-up (95 %)", "system time", "page faults", "peak memory")
#: Memory beyond the default's that is worth reporting: as a fraction of it, and in bytes.
_MORE, _MUCH = 1.25, 32 << 20


def judged(outcome: Outcome) -> verdict.Verdict:
    """Return what the figures allow to conclude.

    Processor time decides only where the clock does not; that what is faster needs more of it is said in any case.
    """
    found = _by_the_clock(outcome)
    if outcome.rounds < verdict.FEWEST or not all(run.processor for row in outcome.rows for run in row.runs):
        return found
    noise = speedup(outcome.default.runs, outcome.rows[1].runs, "processor")
    standings = _standings(outcome, "processor")
    said = verdict.paid(noise, [one for one in standings if one.name in found.faster])
    noisy = verdict.margin(outcome.noise) != verdict.LEAST
    if (noisy or found.unsure) and not (found.faster or found.slower):
        said = verdict.by_processor_time(noise, standings)
    return replace(found, sentences=(*found.sentences, *said))


def _by_the_clock(outcome: Outcome) -> verdict.Verdict:
    runs = {row.contender.name: row.runs for row in outcome.others}
    return verdict.judge(
        outcome.noise,
        _standings(outcome, "wall"),
        outcome.rounds,
        lambda first, second: speedup(runs[second], runs[first]),
    )


def _standings(outcome: Outcome, time: str) -> list[verdict.Standing]:
    return [
        verdict.Standing(
            row.contender.name, speedup(outcome.default.runs, row.runs, time), candidates.served(row.contender)
        )
        for row in outcome.others
    ]


def table(outcome: Outcome) -> Table:
    """Return the table, with a row for each contender."""
    title = f"Medians of {units.count(outcome.rounds, 'interleaved run')}"
    return Table(title, _COLUMNS, [_cells(row, outcome) for row in outcome.rows])


def _cells(row: Row, outcome: Outcome) -> Sequence[str]:
    name = row.contender.name
    if row.failure is not None:
        return name, "failed", *[""] * (len(_COLUMNS) - 2)
    low, wall, high = quartiles(row.runs, "wall")
    against = "1"
    if row is not outcome.default:
        ratio = speedup(outcome.default.runs, row.runs)
        against = f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
        if outcome.rounds < verdict.FEWEST:
            against = f"{ratio.value:.2f}"
    spread = f" \u00b1 {50 * (high - low) / wall:.1f} %" if outcome.rounds > 1 else ""
    return (
        name,
        f"{units.seconds(wall)}{spread}",
        against,
        units.seconds(quartiles(row.runs, "system")[1]),
        f"{quartiles(row.runs, 'minor_faults')[1]:,.0f}",
        f"{quartiles(row.runs, 'peak_bytes')[1] / (1 << 20):,.0f} MiB",
    )


def notes(outcome: Outcome, absent: Sequence[str], loading: str | None) -> list[str]:
    """Return notes that explain the table."""
    said = [f"{row.contender.name}: {words}" for row in outcome.rows for words in (row.failure, row.remark) if words]
    if absent:
        said.append(f"left out, because not installed:  {', '.join(absent)}")
    if left := candidates.left_out():
        said.append(f"set in your environment, but not passed to any contender:  {', '.join(left)}")
    said += [words for row in outcome.others if (words := _memory(row, outcome.default))]
    major = sum(run.major_faults for row in outcome.rows for run in row.runs)
    if major:
        said.append(f"{units.count(major, 'fault')} in total waited for the disk (major faults)")
    if loading is not None:
        said.append(loading)
    spread = "\u00b1 is half of the interquartile range"
    if outcome.rounds >= verdict.FEWEST:
        said.append(f"{spread}; the interval is a bootstrap over the ratios of the rounds, widened if there are few")
    elif outcome.rounds > 1:
        said.append(f"{spread}; fewer than {verdict.FEWEST} rounds allow no interval")
    said.append("peak memory is that of the largest process; times and faults include child processes")
    return said + outcome.cautions


def _memory(row: Row, default: Row) -> str | None:
    own, plain = (quartiles(one.runs, "peak_bytes")[1] for one in (row, default))
    if own < _MORE * plain or own - plain < _MUCH:
        return None
    return f"{row.contender.name} needs {own / plain:.2f} times the memory of the default"


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
    ratio = asdict(speedup(outcome.default.runs, row.runs)) if row.runs else None
    return {
        "name": row.contender.name,
        "environment": row.contender.environment,
        "firsttouch": row.contender.install,
        "failure": row.failure,
        "remark": row.remark,
        "speedup": ratio,
        "runs": [asdict(run) for run in row.runs],
    }


#: What a process loads for the default pool, and where an expression names the allocator.
LOADED = {
    False: "from _firsttouch_start import native; native.load().register()",
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
        axes.axvline(scale * quartiles(rows[0].runs, "wall")[1], color=_DEFAULT, lw=0.8, ls=":")
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

"""The outcome in the forms that people and programs read: sentences, a table, notes, plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from firsttouch.tools.compare import candidates, verdict
from firsttouch.tools.compare.comparison import Outcome, Row
from firsttouch.tools.compare.figures import quartiles, speedup
from firsttouch.tools.measuring.report import Table

_COLUMNS = ("allocator", "wall time", "speed-up (95 %)", "system time", "page faults", "peak memory")
#: Memory beyond the default's that is worth a word: as a part of it, and in bytes.
_MORE, _MUCH = 1.25, 32 << 20


def judged(outcome: Outcome) -> verdict.Verdict:
    """What the figures allow to say."""
    runs = {row.contender.name: row.runs for row in outcome.others}
    standings = [
        verdict.Standing(row.contender.name, speedup(outcome.default.runs, row.runs), candidates.served(row.contender))
        for row in outcome.others
    ]
    return verdict.judge(
        outcome.noise, standings, outcome.rounds, lambda first, second: speedup(runs[second], runs[first])
    )


def table(outcome: Outcome) -> Table:
    """A row for each contender."""
    title = f"Medians of {outcome.rounds} interleaved run{'s' * (outcome.rounds > 1)}"
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
        f"{seconds(wall)}{spread}",
        against,
        seconds(quartiles(row.runs, "system")[1]),
        f"{quartiles(row.runs, 'minor_faults')[1]:,.0f}",
        f"{quartiles(row.runs, 'peak_bytes')[1] / (1 << 20):,.0f} MiB",
    )


def notes(outcome: Outcome, absent: Sequence[str], importing: float | None) -> list[str]:
    """What has to be known beside the table."""
    said = [f"{row.contender.name}: {words}" for row in outcome.rows for words in (row.failure, row.remark) if words]
    if absent:
        said.append(f"not installed here, and so left out: {', '.join(absent)}")
    if left := candidates.left_out():
        said.append(f"set in your environment, and given to no contender: {', '.join(left)}")
    said += [words for row in outcome.others if (words := _memory(row, outcome.default))]
    major = sum(run.major_faults for row in outcome.rows for run in row.runs)
    if major:
        said.append(f"{major:,} fault{'s' * (major > 1)} in all waited for the disk (major faults)")
    if importing is not None:
        said.append(f"the figures of firsttouch include its own import, {seconds(importing)} a process")
    spread = "\u00b1 is half of what lies between the quartiles"
    if outcome.rounds >= verdict.FEWEST:
        said.append(f"{spread}; the interval is a bootstrap of the rounds' ratios, widened where they are few")
    elif outcome.rounds > 1:
        said.append(f"{spread}; fewer than {verdict.FEWEST} rounds allow no interval")
    said.append("peak memory is that of the largest process; times and faults are those of all that were waited for")
    return said + outcome.cautions


def _memory(row: Row, default: Row) -> str | None:
    own, plain = (quartiles(one.runs, "peak_bytes")[1] for one in (row, default))
    if own < _MORE * plain or own - plain < _MUCH:
        return None
    return f"{row.contender.name} needs {own / plain:.2f} times the memory of NumPy's default"


def seconds(amount: float) -> str:
    """Three digits, in milliseconds below one second."""
    if amount >= 99.95:
        return f"{amount:,.0f} s"
    value, unit = (amount, "s") if amount >= 0.9995 else (1000 * amount, "ms")
    digits = 2 if value <= 0 else max(0, 2 - math.floor(math.log10(value)))
    return f"{value:.{min(digits, 2)}f} {unit}"


def data(outcome: Outcome) -> dict[str, Any]:
    """All of it in plain types, each single run included."""
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

"""What a scope holds over thousands of turns."""

from __future__ import annotations

from benchmarks.tasks.scratch_memory import PROGRAMS
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.sizes import KIB, MIB, name
from firsttouch.tools.measuring.statistics import Verdict

TURNS = 10_000
CHUNK = 1 * MIB
SIZES = (2 * KIB, 16 * KIB, 128 * KIB, 512 * KIB)
#: How much may be held, times what lived at the most.
BARS = dict(zip(PROGRAMS, (4, 2, 2, 4), strict=True))


def run(quick: bool) -> Section:
    """Every program at every size, each once: nothing here is left to chance."""
    section = Section(
        "scratch_memory",
        "What one scope holds over 10,000 turns",
        "`x = x * 0.5 + 1` at most four times what lived at the most; a loop that binds the same names anew at most "
        "twice; either may hold a chunk (1 MiB), the least there is. *Lived* is what the buffer counted at its peak.",
    )
    table = Table("", ["loop", "array", "lived", "held", "held / lived", "left at the end", "bar"])
    above: dict[str, list[str]] = {program: [] for program in PROGRAMS}
    for program, bar in BARS.items():
        for size in SIZES[:1] if quick else SIZES:
            arguments = {"program": program, "nbytes": size, "turns": 200 if quick else TURNS}
            samples = collect([NUMPY], Call("benchmarks.tasks.scratch_memory", "measure", arguments), Plan(1, 1))
            reply = samples.replies[NUMPY.name][0][0]
            section.raw[f"{program} {size}"] = reply
            held, lived = reply["held"], reply["lived"]
            row = [program, name(size), f"{lived / KIB:,.0f} KiB", f"{held / KIB:,.0f} KiB", f"{held / lived:.2f}"]
            table.rows.append([*row, f"{reply['left'] / KIB:,.0f} KiB", f"{bar}"])
            if held > max(bar * lived, CHUNK):
                above[program].append(f"{name(size)}: {held / lived:.2f}")
    section.tables.append(table)
    for program, bar in BARS.items():
        got = "; ".join(above[program]) or "at every size"
        outcome = "failed" if above[program] else "passed"
        section.verdicts.append(Verdict(f"{program}: at most {bar} times what lived", got, outcome))
    return section

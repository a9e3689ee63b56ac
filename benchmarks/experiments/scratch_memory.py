"""The memory that a scope holds over thousands of iterations."""

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
#: The bound on the memory held, as a multiple of the peak of what was live.
BARS = dict(zip(PROGRAMS, (4, 2, 2, 4), strict=True))


def run(quick: bool) -> Section:
    """Run every program at every size, each once: the result does not depend on chance."""
    section = Section(
        "scratch_memory",
        "The memory of one scope over 10,000 iterations",
        "`x = x * 0.5 + 1` holds at most four times the peak of what was live; a loop that rebinds the same names at "
        "most twice; either may hold a chunk (1 MiB), the minimum. *Live* is the peak that the buffer counted.",
    )
    table = Table("", ["loop", "array", "live", "held", "held / live", "left at the end", "bar"])
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
        section.verdicts.append(Verdict(f"{program}: at most {bar} times what was live", got, outcome))
    return section

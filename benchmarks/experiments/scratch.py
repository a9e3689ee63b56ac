"""`@scratch` on a function with six temporaries, compared with NumPy's default, the pool, and `@use(pool)`."""

from __future__ import annotations

from benchmarks.tasks.scratch import FUNCTIONS
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY, TUNED_GLIBC
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, Samples, collect
from firsttouch.tools.measuring.sizes import KIB, MIB, name
from firsttouch.tools.measuring.statistics import Matrix, judge, median

SIZES = (1 * KIB, 4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 1 * MIB, 8 * MIB)
SECONDS = 0.012
TITLES = {"scalar": "Returning a number", "array": "Returning an array"}


def ratios(samples: Samples, function: str) -> dict[str, Matrix]:
    """Return the decorated function's time divided by others'; the pool's is that of the same process."""
    ours, plain = f"{function} scratch", f"{function} plain"
    time = samples.column(FIRSTTOUCH, ours)
    return {
        "the pool": time / samples.column(FIRSTTOUCH, plain),
        "`@use(pool)`": time / samples.column(FIRSTTOUCH, f"{function} use"),
        "scratch again": time / samples.column(FIRSTTOUCH, f"{function} again"),
        "NumPy": samples.column(NUMPY, ours) / samples.column(NUMPY, plain),
        "tuned glibc": time / samples.column(TUNED_GLIBC, plain),
    }


def run(quick: bool) -> Section:
    """Measure both functions at every size, then judge the bars."""
    section = Section(
        "scratch",
        "A function with six temporaries in a scratch scope",
        "inside `@scratch` no slower than under the installed pool at any size beyond the noise, and the times of "
        "calls spread less (95th over 50th percentile) than under NumPy's default. Cells are its time divided by "
        "the column's: below 1 it is faster. A returned array of 128 KiB or less is copied to ordinary memory; "
        "larger ones have memory of their own.",
    )
    tables = {key: Table(f"**{title}**", []) for key, title in TITLES.items()}
    spread = Table("**Spread**: 95th percentile over the median", ["array", "function", "NumPy", "the pool", "scratch"])
    against: dict[str, dict[str, Matrix]] = {key: {} for key in FUNCTIONS}
    wider: dict[str, dict[str, Matrix]] = {key: {} for key in FUNCTIONS}
    for size in (16 * KIB, 1 * MIB) if quick else SIZES:
        call = Call("benchmarks.tasks.scratch", "measure", {"nbytes": size, "seconds": SECONDS})
        plan = Plan(4, 2) if size > 1 * MIB and not quick else Plan.steady(quick)  # seconds per round
        samples = collect([NUMPY, FIRSTTOUCH, TUNED_GLIBC], call, plan, 10 * size)
        section.raw[str(size)] = samples.replies
        for function, table in tables.items():
            cells = ratios(samples, function)
            table.columns = ["array", "time", *cells]
            time = f"{median(samples.column(FIRSTTOUCH, f'{function} scratch')).value * 1e6:,.1f} us"
            table.rows.append([name(size), time, *(str(median(cell)) for cell in cells.values())])
            against[function][name(size)] = cells["the pool"]
            plain = samples.column(NUMPY, f"{function} plain spread")
            ours = samples.column(NUMPY, f"{function} scratch spread")
            pool = samples.column(FIRSTTOUCH, f"{function} plain spread")
            wider[function][name(size)] = ours / plain
            words = [f"{median(column).value:.2f}" for column in (plain, pool, ours)]
            spread.rows.append([name(size), function, *words])
    section.tables += [*tables.values(), spread]
    for function, title in TITLES.items():
        section.verdicts.append(judge(f"{title}: at most the pool's time", 1.0, against[function]))
        section.verdicts.append(judge(f"{title}: its spread at most NumPy's", 1.0, wider[function]))
    section.notes.append("The spreads of NumPy and scratch are from one process with NumPy's default.")
    return section

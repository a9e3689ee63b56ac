"""What a memory chosen for each call site could gain at most, over the best single choice for a whole program."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments.kernels import same_results
from benchmarks.programs import NAMES
from firsttouch.tools.measuring.contenders import NUMPY, Contender
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.statistics import Matrix, Verdict, geometric_mean, halves, median

FOOTPRINT = 128 << 20
WORTH = 1.05
CHOICES = {
    "pool()": "recycled, huge pages",
    "pool(pages())": "recycled, base pages",
    "pool(fault_ahead=True)": "recycled, fault-ahead",
    "pages(huge='thp')": "fresh, huge pages",
    "pages(huge='thp', populate=True)": "fresh, populated",
    "mimalloc()": "mimalloc",
}


def run(quick: bool) -> Section:
    """Bound what an oracle could reach, for every whole program."""
    section = Section(
        "oracle",
        "A memory for each call site: what it could gain at most",
        f"whether the best choice for each call site could be {WORTH - 1:.0%} faster than the best single choice for "
        "the whole program. Cells are processor time after the imports.",
    )
    contenders = [NUMPY, *(Contender(what, install=expression) for expression, what in CHOICES.items())]
    columns = ["program", *(one.name for one in contenders), "least user time", "best choice / least user time"]
    table = Table("", columns)
    bounds: dict[str, Matrix] = {}
    for program in NAMES[-1:] if quick else NAMES:
        call = Call("benchmarks.tasks.whole", "measure", {"program": program})
        samples = collect(contenders, call, Plan(2 if quick else 5, 1), FOOTPRINT)
        same_results(samples, program)
        section.raw[program] = samples.replies
        user = {one.name: samples.column(one, "user") for one in contenders}
        total = {name: user[name] + samples.column(name, "system") for name in user}
        bounds[program] = _bound(total, user)
        cells = [f"{median(total[one.name]).value:.2f} s" for one in contenders]
        least = min(median(times).value for times in user.values())
        table.rows.append([program, *cells, f"{least:.2f} s", str(median(bounds[program]))])
    section.tables.append(table)
    mean = geometric_mean(list(bounds.values()))
    decided = "passed" if mean.high < WORTH else "failed" if mean.low > WORTH else "not shown"
    outcome = "not measured" if quick else decided
    section.verdicts.append(
        Verdict(f"less than {WORTH - 1:.0%} could be gained (and no policy is built)", f"at most {mean}", outcome)
    )
    section.notes.append(
        "The bound is generous: the oracle is allowed the user time of whichever choice has the least, and no system"
        " time at all, though even its memory has to be faulted in once."
    )
    return section


def _bound(total: dict[str, Matrix], user: dict[str, Matrix]) -> Matrix:
    """Return per-round ratios of the best choice's time to the least user time, each chosen on the other rounds."""
    shape = next(iter(total.values())).shape
    ratios = np.empty(shape)
    first = halves(shape)
    for half, other in ((first, ~first), (~first, first)):
        best = min(total, key=lambda name: float(np.median(total[name][other])))
        least = min(user, key=lambda name: float(np.median(user[name][other])))
        ratios[half] = (total[best] / user[least])[half]
    return ratios

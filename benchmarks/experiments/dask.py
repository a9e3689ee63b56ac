"""An elementwise expression on a Dask cluster of real processes."""

from __future__ import annotations

import importlib.util

from benchmarks.tasks.dask import VARIABLE
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.statistics import Verdict, judge, median

DEFAULT = Contender("Dask's default", {VARIABLE: "default"})
RAISED = Contender("trim threshold raised", {VARIABLE: "raised"})
PRELOAD = Contender("firsttouch.dask", {VARIABLE: "firsttouch"})
AGAIN = Contender("firsttouch.dask again", {VARIABLE: "firsttouch"})
BAR = 1.6


def run(quick: bool) -> Section:
    """Measure on clusters that wait while another one works."""
    size = 2000 if quick else 8000
    section = Section(
        "dask",
        "Dask: an expression on a LocalCluster",
        f"`((a*b+a)/(b+1.0)-a).sum()` over {size} x {size} in chunks of 500 x 500, one worker process with two "
        f"threads: at least {BAR} times faster than Dask's default, and no slower than with `MALLOC_TRIM_THRESHOLD_` "
        "raised in `distributed.nanny.pre-spawn-environ`. Ours is `distributed.worker.preload: [firsttouch.dask]`.",
    )
    if importlib.util.find_spec("distributed") is None:
        section.verdicts.append(Verdict(f"{BAR} times faster", "distributed is not installed", "not measured"))
        return section
    everyone = (DEFAULT, RAISED, PRELOAD, AGAIN)
    call = Call("benchmarks.tasks.dask", "expression", {"size": size, "chunk": 500})
    samples = collect(everyone, call, Plan(1, 2) if quick else Plan(4, 6), 0)
    section.raw["expression"] = samples.replies
    table = Table("", ["cluster", "seconds", "firsttouch.dask / it"])
    for who in everyone:
        taken = f"{median(samples.column(who, 'seconds')).value:.2f}"
        table.rows.append([who.name, taken, str(median(samples.ratio(PRELOAD, who, "seconds")))])
    section.tables.append(table)
    for bar, limit, other in (
        (f"at least {BAR} times faster than Dask's default", 1 / BAR, DEFAULT),
        ("no slower than with the trim threshold raised", 1.0, RAISED),
    ):
        section.verdicts.append(judge(bar, limit, {other.name: samples.ratio(PRELOAD, other, "seconds")}))
    return section

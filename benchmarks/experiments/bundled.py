"""The bundled mimalloc and jemalloc as NumPy's handler, compared with the same libraries preloaded."""

from __future__ import annotations

from firsttouch.tools.measuring.contenders import NUMPY, Contender, preloaded
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.sizes import EXPRESSIONS, QUICK, fitting, name
from firsttouch.tools.measuring.statistics import Matrix, Verdict, judge, median

SECONDS = 0.03


def run(quick: bool) -> Section:
    """Measure the expression at every size: installed, preloaded."""
    section = Section(
        "bundled",
        "Bundled allocators as handlers",
        "at least as fast as the same library preloaded, on `(a*b+a)/(b+1.0)-a`. Cells are the handler's time divided "
        "by the preloaded library's.",
    )
    rivals = {contender.name: contender for contender in preloaded()[0]}
    for library in ("mimalloc", "jemalloc"):
        rival = rivals.get(library)
        bar = f"{library}() at most the preloaded library's time"
        if rival is None:
            section.verdicts.append(Verdict(bar, "the library is absent on this machine", "not measured"))
            continue
        ours = Contender(f"{library}()", install=f"{library}()")
        contenders = [ours, Contender(f"{library}() again", install=f"{library}()"), rival, NUMPY]
        table = Table(f"**{library}**", ["array", "time", *(contender.name for contender in contenders[1:])])
        cells: dict[str, Matrix] = {}
        sizes, notes = fitting(QUICK if quick else EXPRESSIONS, 5 * len(contenders))
        section.notes += notes
        for size in sizes:
            call = Call("benchmarks.tasks.expression", "measure", {"nbytes": size, "seconds": SECONDS})
            samples = collect(contenders, call, Plan.steady(quick), 5 * size)
            section.raw[f"{library} {size}"] = samples.replies
            cells[name(size)] = samples.ratio(ours, rival, "seconds")
            ratios = [str(median(samples.ratio(ours, other, "seconds"))) for other in contenders[1:]]
            time = f"{median(samples.column(ours, 'seconds')).value * 1e6:,.0f} us"
            table.rows.append([name(size), time, *ratios])
        section.tables.append(table)
        section.verdicts.append(judge(bar, 1.0, cells))
    return section

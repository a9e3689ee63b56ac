"""Peak resident memory of different programs, and what is still held two seconds after the last array was freed."""

from __future__ import annotations

from benchmarks.tasks.programs import PROGRAMS
from firsttouch.tools.measuring.contenders import AGAIN, FIRSTTOUCH, NUMPY, Contender, peers
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, Samples, collect
from firsttouch.tools.measuring.sizes import MIB
from firsttouch.tools.measuring.statistics import Matrix, Verdict, judge, losses, median

BAR, LEFT, WAIT = 1.15, 16 * MIB, 2.0
RUNS = 3  # memory figures hardly differ between runs


def mib(samples: Samples, contender: Contender, key: str) -> str:
    """Return a median in MiB."""
    return f"{median(samples.column(contender, key)).value / MIB:,.1f}"


def run(quick: bool) -> Section:
    """Run every program in fresh processes, one at a time."""
    section = Section(
        "memory",
        "Resident memory",
        f"peak resident memory, counted after the imports, at most {BAR} times plain NumPy's; two "
        "seconds after the last array is freed, resident memory and the control group's within 16 MiB of "
        "plain NumPy's.",
    )
    ours, plan = (NUMPY, FIRSTTOUCH, AGAIN), Plan(2 if quick else RUNS, 1)
    rivals = [] if quick else peers()
    names = [contender.name for contender in (AGAIN, *rivals)]
    columns = ["program", "NumPy's MiB", "firsttouch / NumPy", *(f"/ {name}" for name in names)]
    peaks = Table("**Peak**", columns)
    left = Table(
        f"**MiB left after {WAIT:g} s**, counted after the imports",
        ["program", "NumPy: resident", "group", "firsttouch: resident", "group"],
    )
    cells: dict[str, Matrix] = {}
    beaten: dict[tuple[str, str], Matrix] = {}
    above: list[str] = []
    for program in list(PROGRAMS)[-3:] if quick else PROGRAMS:
        call = Call("benchmarks.tasks.programs", "measure", {"program": program, "wait": 0.0})
        samples = collect([*ours, *rivals], call, plan, 0, alone=True)
        waited = Call("benchmarks.tasks.programs", "measure", {"program": program, "wait": WAIT})
        later = collect(ours[:2], waited, Plan(1 if quick else 2, 1), 0, alone=True)
        section.raw[program] = {"peak": samples.replies, "left": later.replies}
        ratios = {name: samples.ratio(FIRSTTOUCH, name, "peak") for name in (NUMPY.name, *names)}
        cells[program] = ratios[NUMPY.name]
        beaten.update({(rival.name, program): ratios[rival.name] for rival in rivals})
        words = [str(median(ratio)) for ratio in ratios.values()]
        peaks.rows.append([program, mib(samples, NUMPY, "peak"), *words])
        keys = [key for key in ("left", "group") if key in later.replies[NUMPY.name][0][0]]
        row = [mib(later, who, key) if key in keys else "" for who in ours[:2] for key in ("left", "group")]
        left.rows.append([program, *row])
        for key in keys:
            more = median(later.column(FIRSTTOUCH, key) - later.column(NUMPY, key)).value
            if more > LEFT:
                what = "resident" if key == "left" else "group"
                above.append(f"{program}: {more / MIB:+,.1f} MiB ({what})")
    section.tables += [peaks, left]
    section.verdicts.append(judge(f"peak at most {BAR} times NumPy's", BAR, cells))
    got = "; ".join(above) or "no program is above"
    bar = f"after {WAIT:g} s at most {LEFT // MIB} MiB above NumPy's"
    section.verdicts.append(Verdict(bar, got, "failed" if above else "passed"))
    section.notes += losses("firsttouch's peak", beaten) if rivals else []
    section.notes.append(f"Medians of {plan.generations} runs; the group's figure is its change in the run.")
    return section

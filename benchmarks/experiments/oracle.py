"""What a memory of its own for each line of a program could gain, over the best single choice for the whole program."""

from __future__ import annotations

from random import Random

import numpy as np
import numpy.typing as npt

from benchmarks.experiments.kernels import same_results
from benchmarks.programs import NAMES
from benchmarks.tasks.sites import SCRATCH, chosen
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.statistics import RESAMPLES, Estimate, Matrix, Verdict, geometric_mean, interval, median

FOOTPRINT = 128 << 20
WORTH = 1.05
LEAST = 0.001  # of a program's time: a line that gains less, or not in every round, keeps the memory of the others
LONGEST = 100  # lines of a program
CHOICES = {
    "numpy_default()": "NumPy's",
    "pool()": "recycled, huge pages",
    "pool(pages())": "recycled, base pages",
    "pages(huge='thp')": "fresh, huge pages",
    "mimalloc()": "mimalloc",
    SCRATCH: "scratch",
}
EXPRESSIONS, KINDS = list(CHOICES), list(CHOICES.values())
BEST, BY_LINE, LOT = "best choice", "run by line", "drawn by lot"
Lines = npt.NDArray[np.float64]  # choices by lines by rounds
NOTES = f"""\
*Least of each line* is the sum of the least processor time, page faults included, that each line of a program took \
under any choice, in the median of the rounds. It is generous: the noise of every line counts for the oracle. What it \
takes to tell the lines apart is not counted.
*{BY_LINE.capitalize()}* is the oracle's program: the best choice for all lines, except those that in every round took \
at least {LEAST:.1%} of the program's time less under another one. Where no line changed, the figure is the noise.
*{LOT.capitalize()}* gives each line one of the choices at random, and *lines alone* is the sum of what these lines \
took where all others had the same memory: above 1, lines lose by what their neighbours have.
Left out are populated memory, which faults in at once what fresh memory faults in where it is used, and multi-size \
pages, which lie between base and huge pages.
""".splitlines()
NOT_BUILT = """\
So no policy by line is built: of all kinds of recycled memory, the best one for a program is nearly the best for each \
of its lines. Mixing costs more than it gains, since what one line leaves idle cannot serve another."""


def run(quick: bool) -> Section:
    """Bound what an oracle could reach, for every whole program, and run what it chose."""
    section = Section(
        "oracle",
        "A memory for each line: what it could gain",
        f"whether the best choice for each line that makes arrays could be {WORTH - 1:.0%} faster than the best single "
        "choice for the whole program. Cells are processor time after the imports.",
    )
    columns = [f"{BEST} / least of each line", "lines changed", f"{BEST} / {BY_LINE}", f"{LOT} / lines alone"]
    table = Table("", ["program", *KINDS, *columns])
    found = [Measured(program, quick) for program in (NAMES[-1:] if quick else NAMES)]
    for one in found:
        section.raw[one.program] = one.replies
        cells = [f"{seconds:.2f} s" for seconds in one.usual.sum(axis=1)]
        changes = f"{len(one.changes)} of {one.usual.shape[1]}"
        row = [_estimate(one.bound), changes, median(one.gain), median(one.lot)]
        table.rows.append([one.program, *cells, *map(str, row)])
    mean = _estimate(np.exp(np.mean([np.log(one.bound) for one in found], axis=0)))
    gain, lot = geometric_mean([one.gain for one in found]), geometric_mean([one.lot for one in found])
    table.rows.append(["geometric mean", *("" for _ in KINDS), str(mean), "", str(gain), str(lot)])
    section.tables.append(table)
    outcome = "passed" if mean.high < WORTH else "failed" if mean.low > WORTH else "not shown"
    outcome = "not measured" if quick else outcome
    bar = f"less than {WORTH - 1:.0%} could be gained (and no policy is built)"
    section.verdicts.append(Verdict(bar, f"at most {mean}", outcome))
    section.notes += [*NOTES, NOT_BUILT] if outcome == "passed" else NOTES
    return section


class Measured:
    """A program under every choice, with choices drawn by lot, and as the oracle would run it."""

    def __init__(self, program: str, quick: bool) -> None:
        self.program = program
        call = Call("benchmarks.tasks.sites", "measure", {"program": program})
        drawn = {line: Random(f"{program} {line}").randrange(len(KINDS)) for line in range(LONGEST)}
        mixed = chosen("numpy_default()", {line: EXPRESSIONS[choice] for line, choice in drawn.items()})
        contenders = [Contender(what, chosen(expression)) for expression, what in CHOICES.items()]
        samples = collect([*contenders, Contender(LOT, mixed)], call, Plan(2 if quick else 3, 1), FOOTPRINT)
        lines = sorted(int(name) for name in samples.replies[LOT][0][0] if name.isdecimal())
        spent = np.stack([[samples.column(what, str(line))[:, 0] for line in lines] for what in KINDS])
        self.usual = np.median(spent, axis=2)
        self.bound = bound(spent, np.random.default_rng(NAMES.index(program)))
        alone = self.usual[[drawn[line] for line in lines], range(len(lines))].sum()
        self.lot = samples.column(LOT, "seconds") / alone
        best = int(self.usual.sum(axis=1).argmin())
        self.changes = {lines[at]: EXPRESSIONS[choice] for at, choice in changed(spent, best).items()}
        ours = {BEST: chosen(EXPRESSIONS[best]), BY_LINE: chosen(EXPRESSIONS[best], self.changes)}
        real = collect([Contender(*one) for one in ours.items()], call, Plan(2 if quick else 3, 1), FOOTPRINT)
        self.gain = real.ratio(BEST, BY_LINE, "seconds")
        samples.replies |= real.replies
        same_results(samples, program)
        self.replies = samples.replies


def bound(spent: Lines, random: np.random.Generator) -> Matrix:
    """Return the best choice's time over the sum of each line's least, then the same of rounds drawn again."""
    rounds = spent.shape[2]
    drawn = random.integers(rounds, size=(RESAMPLES, rounds))
    usual = np.median(spent[:, :, np.vstack([np.arange(rounds), drawn])], axis=3)
    return np.asarray(usual.sum(axis=1).min(axis=0) / usual.min(axis=0).sum(axis=0))


def changed(spent: Lines, best: int) -> dict[int, int]:
    """Return the choices, by line, that are faster than the best single one in every round."""
    gains = (spent[best] - spent).min(axis=2)
    worth = LEAST * float(np.median(spent[best].sum(axis=0)))
    return {int(line): int(gains[:, line].argmax()) for line in np.flatnonzero(gains.max(axis=0) > worth)}


def _estimate(found: Matrix) -> Estimate:
    """Return what `bound` returned as a figure with its interval."""
    return interval(float(found[0]), found[1:])

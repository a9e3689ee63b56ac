"""Peak resident memory of different programs, and what is still held two seconds after the last array was freed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import AGAIN, Matrix, Plan, Samples, Section, Verdict, collect, judge, losses, median, peers
from firsttouch._internal.process_memory import peak, reset_peak, resident
from firsttouch.tools.bench.common import MIB
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY, Contender
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


Array = np.ndarray[Any, np.dtype[Any]]


def stencil() -> None:
    """Do ten steps of a five-point stencil, written with slices."""
    u = np.zeros((2048, 2048))
    u[0] = 1.0
    for _ in range(10):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def linear_algebra() -> None:
    """Compute products, a solution and a decomposition."""
    m = np.random.default_rng(1).random((700, 700))
    spd = m @ m.T + 700.0 * np.eye(700)
    x = np.linalg.solve(spd, m)
    np.linalg.cholesky(spd + x @ x.T)


def sorting() -> None:
    """Sort, order, distinct values and a histogram of two million numbers."""
    values = np.random.default_rng(2).random(2_000_000)
    order = np.argsort(values)
    values = values[order]
    np.unique(np.floor(values * 1000.0))
    np.histogram(values, 100)


def growing_lists() -> None:
    """Collect chunks in lists, join them, and collect again, as readers of files do."""
    random = np.random.default_rng(3)
    joined = np.zeros(0)
    for _ in range(8):
        chunks: list[Array] = [random.random(int(size)) for size in random.integers(5_000, 60_000, 60)]
        joined = np.concatenate([joined, *chunks])


def images() -> None:
    """Compute blur and edges of colour images, in float32."""
    random = np.random.default_rng(4)
    for _ in range(4):
        image = random.random((1080, 1440, 3), dtype=np.float32)
        grey = image @ np.array([0.3, 0.59, 0.11], np.float32)
        blurred = sum(np.roll(grey, shift, axis) for shift in (-1, 0, 1) for axis in (0, 1)) / np.float32(6)
        gy, gx = np.gradient(blurred)
        edges = np.sqrt(gx * gx + gy * gy)
        np.clip(edges * 255.0, 0, 255).astype(np.uint8)


def random_sizes() -> None:
    """Keep three hundred arrays of all sizes up to 2 MiB, replaced at random."""
    random = np.random.default_rng(5)
    living: list[Array] = [np.ones(1)] * 300
    sizes = np.exp(random.uniform(np.log(1 << 10), np.log(2 << 20), 6000)) / 8
    for slot, size in zip(random.integers(300, size=6000), sizes, strict=True):
        living[slot] = np.full(int(size), 1.0)


def many_arrays() -> None:
    """Keep 10,000 arrays of 33 to 127 KiB, each written."""
    sizes = np.random.default_rng(6).integers(33 << 10, 127 << 10, 10_000)
    living = [np.full(int(size), 1, np.uint8) for size in sizes]
    living.reverse()


def sparse_zeros() -> None:
    """Keep 1,000 arrays of 1 MiB, in each of which one element is written."""
    living = [np.zeros(1 << 17) for _ in range(1_000)]
    for array in living:
        array[len(array) // 2] = 1.0


def tables() -> None:
    """Filter, group and join columns, with temporaries of many lengths."""
    random = np.random.default_rng(7)
    for _ in range(6):
        key = random.integers(0, 500, 400_000)
        value = random.random(400_000)
        kept = value > random.random()
        sums = np.bincount(key[kept], value[kept], 500)
        joined = sums[key] - value
        np.column_stack([key, value, joined])[joined > 0]


PROGRAMS: dict[str, Callable[[], None]] = {
    "stencil": stencil,
    "linear algebra": linear_algebra,
    "sorting": sorting,
    "growing lists of arrays": growing_lists,
    "images": images,
    "random sizes": random_sizes,
    "10,000 arrays of 33 to 127 KiB": many_arrays,
    "1,000 sparse zeros of 1 MiB": sparse_zeros,
    "tables": tables,
}


def charged() -> int | None:
    """Return the bytes charged to the control group now; None if unknown."""
    try:
        return int(Path("/sys/fs/cgroup/memory.current").read_text("ascii"))
    except OSError:
        return None


def measure(program: str, wait: float) -> dict[str, float]:
    """Return the growth of peak resident memory, and what is left after a while."""
    before, group = resident(), charged()
    reset_peak()
    PROGRAMS[program]()
    reply: dict[str, float] = {"peak": peak() - before}
    if wait:
        time.sleep(wait)
        reply["left"] = resident() - before
        now = charged()
        if group is not None and now is not None:
            reply["group"] = now - group
    return reply


# ---- The experiment


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
        call = Call("benchmarks.experiments.memory", "measure", {"program": program, "wait": 0.0})
        samples = collect([*ours, *rivals], call, plan, 0, alone=True)
        waited = Call("benchmarks.experiments.memory", "measure", {"program": program, "wait": WAIT})
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

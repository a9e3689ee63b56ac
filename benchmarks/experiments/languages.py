"""Unmodified programs in C, C++, Fortran, R, Octave, Python and SQL, with the pool behind large blocks of malloc."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from mmap import PAGESIZE
from pathlib import Path

import numpy as np

from benchmarks.languages import FOLDER, LANGUAGES, NAMES, Program, program
from benchmarks.measuring import Column, Section, Verdict, both_axes, geometric_mean, judge, judge_times, median
from firsttouch.tools import preload
from firsttouch.tools.measuring import contenders
from firsttouch.tools.measuring.contenders import HUGE_GLIBC, TUNED_GLIBC, Contender, preloaded
from firsttouch.tools.measuring.processes import Run, once
from firsttouch.tools.measuring.report import Table

DEFAULT, POOL, AGAIN = contenders.DEFAULT, contenders.PRELOADED, Contender("the pool again", {}, install=True)
LEAST, PEAK, REST = 0.95, 1.15, 8 << 10  # the last in KiB
WAIT, INTERVAL = 2.0, 0.01  # seconds that programs wait at their end, and between two looks at their memory
START = 1.0  # in milliseconds


def run(quick: bool) -> Section:
    """Measure every program under every contender."""
    section = Section(
        "languages",
        "Unmodified programs in seven languages",
        f"at most the best peer's time in the geometric mean, none below {LEAST} of the C library's default; peak "
        f"memory at most {PEAK} of it in the geometric mean; two seconds after the last free at most {REST >> 10} MiB "
        f"more; `true` at most {START:g} ms more. Cells are the time of the whole process with the preloaded pool "
        "divided by the column's.",
    )
    missing = preload.missing()
    if missing:
        section.notes.append(f"Not measured: {missing}.")
        return section
    rivals = [HUGE_GLIBC, *([] if quick else [TUNED_GLIBC, *preloaded()[0]])]
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        programs, absent = _programs(["diffusion.c", "buffers.py"] if quick else NAMES, Path(folder))
        section.notes += [f"Not installed here: {', '.join(absent)}."] if absent else []
        everyone = [DEFAULT, POOL, AGAIN, *rivals]
        shuffle = random.Random(0)  # one for all: the same orders for every program would favour the same contenders
        found = {name: _rounds(made, everyone, 2 if quick else 7, shuffle) for name, made in programs.items()}
        _times(section, found, rivals)
        memories = _memories(programs, [DEFAULT, POOL, *rivals])
        _memory(section, found, memories, rivals)
        costs = {
            name: {
                contender: {
                    "seconds": (seconds := _walls(found[name][contender])),
                    "mib_seconds": seconds * memory.mean / 1024,
                    "peak": np.array([run.peak_bytes for run in found[name][contender]], float),
                    "left": np.array([memory.left]),
                }
                for contender, memory in of_program.items()
            }
            for name, of_program in memories.items()
        }
        section.tables.append(both_axes(POOL.name, [DEFAULT.name, *(rival.name for rival in rivals)], costs))
        _start(section, 12 if quick else 60)
    return section


def _programs(names: Sequence[str], folder: Path) -> tuple[dict[str, Program], list[str]]:
    made = {name: program(name, folder) for name in names}
    absent = {LANGUAGES[Path(name).suffix] for name, one in made.items() if one is None}
    return {name: one for name, one in made.items() if one is not None}, sorted(absent)


def _environment(contender: Contender) -> dict[str, str]:
    """Return the variables of a run; the second pool is the first."""
    return {**contenders.environment(POOL if contender == AGAIN else contender), "OMP_NUM_THREADS": "1"}


def _once(made: Program, contender: Contender) -> Run:
    return once(made.command, _environment(contender), made.stdin, os.devnull, os.devnull)


def _rounds(made: Program, everyone: Sequence[Contender], rounds: int, shuffle: random.Random) -> dict[str, list[Run]]:
    """Return the runs of every contender, in an order that is shuffled in each round; the first round is dropped."""
    found: dict[str, list[Run]] = {contender.name: [] for contender in everyone}
    for turn in range(rounds + 1):
        for contender in shuffle.sample(everyone, len(everyone)):
            done = _once(made, contender)
            if done.status != 0:
                raise RuntimeError(f"{made.command} {done.ended} under {contender.name}")
            if turn:
                found[contender.name].append(done)
    return found


def _times(section: Section, found: dict[str, dict[str, list[Run]]], rivals: Sequence[Contender]) -> None:
    for name, runs in found.items():
        section.raw[name] = {who: [vars(one) for one in of] for who, of in runs.items()}
    times = {name: {who: _walls(of) for who, of in runs.items()} for name, runs in found.items()}
    cells = judge_times(section, times, (POOL, DEFAULT, AGAIN), rivals)
    for rival in rivals:
        section.verdicts.append(judge(f"at most the time of {rival.name}", 1.0, cells[rival.name]))
    slow = {name: median(cell) for name, cell in cells[DEFAULT.name].items() if median(cell).low > 1 / LEAST}
    figure = ", ".join(f"{name} {ratio}" for name, ratio in slow.items()) or "none is slower for certain"
    section.verdicts.append(Verdict(f"none below {LEAST} of the default", figure, "failed" if slow else "passed"))


def _walls(runs: Sequence[Run]) -> Column:
    return np.array([run.wall for run in runs])


@dataclass(frozen=True)
class Memory:
    """KiB that are resident two seconds after the last free, and in the mean before that."""

    left: float
    mean: float


def _memories(programs: dict[str, Program], everyone: Sequence[Contender]) -> dict[str, dict[str, Memory]]:
    """Return what is resident for each program and contender."""

    def look(cell: tuple[str, Contender]) -> Memory:
        made, contender = programs[cell[0]], cell[1]
        environment, sizes = {**_environment(contender), "REST": "1"}, []
        with (
            open(made.stdin) as stdin,
            subprocess.Popen(
                made.command, env=environment, stdin=stdin, cwd=FOLDER, stdout=subprocess.PIPE, text=True
            ) as process,
        ):
            assert process.stdout is not None
            while process.poll() is None:
                with contextlib.suppress(ProcessLookupError, IndexError):  # it has ended
                    sizes.append(int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * (PAGESIZE >> 10))
                time.sleep(INTERVAL)
            printed = process.stdout.read()
        if process.returncode != 0:
            raise RuntimeError(f"{made.command} ended with status {process.returncode} under {contender.name}")
        return Memory(float(printed.split()[-1]), float(np.mean(sizes[: -int(WAIT / INTERVAL)] or sizes)))

    cells = [(name, contender) for name in programs for contender in everyone]
    with ThreadPoolExecutor() as pool:
        figures = list(pool.map(look, cells))
    found: dict[str, dict[str, Memory]] = {}
    for (name, contender), figure in zip(cells, figures, strict=True):
        found.setdefault(name, {})[contender.name] = figure
    return found


def _memory(
    section: Section,
    found: dict[str, dict[str, list[Run]]],
    memories: dict[str, dict[str, Memory]],
    rivals: Sequence[Contender],
) -> None:
    others = [POOL, *rivals]
    ratios: dict[str, list[Column]] = {one.name: [] for one in others}
    peaks = Table("**Peak resident memory**, of the default's", ["program", "default", *ratios])
    after = Table("**Resident two seconds after the last free**, MiB", ["program", "default", *ratios])
    for name, runs in found.items():
        bytes_of = {contender: np.array([run.peak_bytes for run in of], float) for contender, of in runs.items()}
        row = []
        for one in others:
            ratios[one.name].append(bytes_of[one.name] / bytes_of[DEFAULT.name])
            row.append(f"{float(np.median(ratios[one.name][-1])):.2f}")
        peaks.rows.append([name, f"{float(np.median(bytes_of[DEFAULT.name])) / 2**20:.1f} MiB", *row])
        after.rows.append([name, *(f"{memories[name][one.name].left / 1024:.1f}" for one in [DEFAULT, *others])])
    means = {one.name: geometric_mean(ratios[one.name]) for one in others}
    peaks.rows.append(["geometric mean", "", *(f"{means[one.name].value:.2f}" for one in others)])
    section.tables += [peaks, after]
    mean = means[POOL.name]
    outcome = "passed" if mean.high <= PEAK else "failed"
    section.verdicts.append(Verdict(f"peak at most {PEAK} of the default's", f"geometric mean {mean}", outcome))
    more = {name: (row[POOL.name].left - row[DEFAULT.name].left) / 1024 for name, row in memories.items()}
    worst = max(more, key=lambda name: more[name])
    outcome = "passed" if more[worst] * 1024 <= REST else "failed"
    bar = f"at most {REST >> 10} MiB more after two seconds"
    section.verdicts.append(Verdict(bar, f"{worst} {more[worst]:.1f} MiB", outcome))


def _start(section: Section, turns: int) -> None:
    """Compare the start of `true`, in turns."""
    true = Program((shutil.which("true") or "true",))
    pairs = [[1e3 * _once(true, contender).wall for contender in (DEFAULT, POOL)] for _ in range(turns)]
    plain, pooled = np.median(pairs, axis=0)
    section.raw["true"] = pairs
    outcome = "passed" if pooled - plain <= START else "failed"
    figure = f"{plain:.2f} ms, with the pool {pooled:.2f} ms"
    section.verdicts.append(Verdict(f"`true` at most {START:g} ms more", figure, outcome))

"""The two classic experiments in their own language: programs in C++ that `new[]`, `malloc` and `calloc` serve."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from firsttouch.tools import preload
from firsttouch.tools.measuring.contenders import TUNED_HUGE, Contender
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.sizes import name

#: How the programs allocate.
MAKERS = {"new[]": "new", "malloc": "malloc", "calloc": "calloc"}
#: Seconds that a program printed, by maker and contender; one pair a round.
Found = dict[tuple[str, str], list[tuple[float, float]]]
_COMPILERS = ("c++", "g++", "clang++")


def contenders() -> list[Contender]:
    """Each environment the programs run in."""
    found = [Contender("plainly"), Contender("tuned glibc, huge pages", TUNED_HUGE)]
    if preload.missing() is None:
        found.append(Contender("preloaded pool", {"LD_PRELOAD": str(preload.FILE)}))
    return found


def compiler() -> str | None:
    """The C++ compiler of the environment, or the first that is found."""
    wanted = (os.environ.get("CXX", ""), *_COMPILERS)
    return next((found for word in wanted if word and (found := shutil.which(word))), None)


@contextmanager
def compiled(program: str) -> Iterator[Path | None]:
    """A program as an executable, for the time of the context; None where no compiler makes one."""
    found = compiler()
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        made = Path(folder) / program
        source = Path(__file__).parent / "programs" / f"{program}.cc"
        done = found and subprocess.run([found, "-O2", str(source), "-o", str(made)], capture_output=True, check=False)
        yield made if done and done.returncode == 0 else None


def measure(program: str, size: int, rounds: int) -> Found | None:
    """Run a program for each maker and contender in every round, in an order that is shuffled anew."""
    shuffle, found = random.Random(0), Found()
    with compiled(program) as made:
        if made is None:
            return None
        cells = [(maker, contender) for maker in MAKERS for contender in contenders()]
        for _ in range(rounds):
            for maker, contender in shuffle.sample(cells, len(cells)):
                command = [str(made), MAKERS[maker], str(size)]
                environment = contender.full_environment()
                printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                first, second = map(float, printed.split())
                found.setdefault((maker, contender.name), []).append((first, second))
    return found


def section_parts(
    program: str, size: int, rounds: int, states: tuple[str, str], shown: Callable[[float], str], unit: str
) -> tuple[list[Table], list[str], dict[str, object]]:
    """The table, the notes and the raw figures of a program; `shown` writes seconds as a rate."""
    found = measure(program, size, rounds)
    if found is None:
        return [], [f"The program in C++ is skipped: no compiler makes one ($CXX, {', '.join(_COMPILERS)})."], {}
    columns = [contender.name for contender in contenders()]
    table = Table(f"**{unit}, the same in C++**, {name(size)}", ["memory", *columns])
    for maker in MAKERS:
        for at, state in enumerate(states):
            medians = [float(np.median([pair[at] for pair in found[maker, column]])) for column in columns]
            table.rows.append([f"{maker}, {state}", *map(shown, medians)])
    missing = preload.missing()
    notes = [] if missing is None else [f"The preloaded pool is left out of the programs in C++: {missing}."]
    return [table], notes, {f"in C++, {maker}, {column}": pairs for (maker, column), pairs in found.items()}


def add_to(
    section: Section,
    program: str,
    size: int,
    rounds: int,
    states: tuple[str, str],
    shown: Callable[[float], str],
    unit: str,
) -> None:
    """Add the parts of a program in C++ to the section of its experiment."""
    tables, notes, raw = section_parts(program, size, rounds, states, shown, unit)
    section.tables += tables
    section.notes += notes
    section.raw |= raw

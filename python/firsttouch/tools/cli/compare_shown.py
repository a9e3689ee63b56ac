"""What `firsttouch compare` says, while it runs and at its end."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from types import TracebackType
from typing import TYPE_CHECKING, Self

from _firsttouch_start import speak
from firsttouch.tools.cli.output import Output
from firsttouch.tools.cli.progress import Bar

if TYPE_CHECKING:
    from firsttouch.tools.compare.comparison import Outcome
    from firsttouch.tools.compare.schedule import Schedule
    from firsttouch.tools.compare.trial import DifferentError, FailedError
    from firsttouch.tools.measuring.contenders import Contender


@dataclass(frozen=True)
class Asked:
    """The words of the command line, the program and its interpreter among them, and which libraries are absent."""

    words: Sequence[str]
    program: Sequence[str]
    python: Sequence[str]
    absent: Sequence[str]


class Teller:
    """Says on standard error what is planned and how far it is."""

    def __init__(self, out: Output) -> None:
        self._bar = Bar("the first run", out.quiet)
        self._plan: Schedule | None = None
        self._part = 0.0

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away."""
        self._bar.__exit__(None, None, None)

    def waiting(self) -> None:
        """Standard input is a pipe that gives nothing."""
        speak.line("compare: waiting for the end of standard input, which every run will get; < /dev/null gives none")

    def planned(self, one_run: float, plan: Schedule, contenders: Sequence[Contender]) -> None:
        """Say how often, and about how long."""
        from firsttouch.tools.compare.report import seconds

        self._plan = plan
        names = ", ".join(contender.name for contender in contenders[2:])
        self._bar.say(f"One run takes {seconds(one_run)}; in turn NumPy's default, twice, and {names}.")
        early = "" if plan.fixed else ", fewer if the figures settle before"
        fewest = f" That is more than the {_duration(plan.budget)} allowed, but fewer runs allow no advice."
        over = fewest if plan.over else ""
        self._bar.say(
            f"{plan.rounds} run{'s' * (plan.rounds > 1)} of each, about {_duration(plan.expected)}{early}.{over}"
        )

    def done(self, part: float) -> None:
        """So much of it is done."""
        self._part = part
        self._bar.done(part, "comparing")

    def interrupted(self) -> str:
        """Half a table would mislead."""
        return f"interrupted at {self._part:.0%}; nothing is shown or written"


def failure(error: FailedError | DifferentError, stdin: str) -> None:
    """Why there is no comparison, after what the program itself had said."""
    said = getattr(error, "said", "")
    if said:
        speak.write(sys.__stderr__, said.rstrip("\n") + "\n")
    hint = ""
    if "EOF" in said and stdin == os.devnull:
        hint = "; its standard input is empty here: give it one, as in firsttouch compare script.py < input.txt"
    speak.line(f"compare: {error}{hint}; there is no comparison")


def show(outcome: Outcome, out: Output, asked: Asked) -> None:
    """Print, write and draw whatever was asked for."""
    from rich.console import Console

    from firsttouch.tools.compare import candidates, importing, report
    from firsttouch.tools.compare.drawing import picture
    from firsttouch.tools.measuring.console import say
    from firsttouch.tools.measuring.console import show as show_table
    from firsttouch.tools.measuring.machine import describe
    from firsttouch.tools.measuring.page import Page

    wanted = out.json or out.html or not out.quiet
    served = wanted and any(candidates.served(row.contender) and row.runs for row in outcome.rows)
    verdict, table = report.judged(outcome), report.table(outcome)
    notes = report.notes(outcome, asked.absent, importing.seconds() if served else None)
    program, python = asked.program, asked.python
    hows = {row.contender.name: candidates.how(row.contender, program, python) for row in outcome.rows[2:]}
    if out.prints:
        if isinstance(sys.stdout, TextIOWrapper):  # a terminal that knows ASCII alone
            sys.stdout.reconfigure(errors="replace")
        console = Console(highlight=False, markup=False, width=None if os.isatty(1) else 120)
        if not out.quiet:
            show_table(table, console)
            for note in notes:
                say(note, console, "- ")
            console.print()
        for sentence in verdict.sentences:
            say(sentence, console, style="bold")
        for name in verdict.faster[:1]:
            console.print(f"  {hows[name]}", soft_wrap=True)
    words = f"firsttouch compare {shlex.join(asked.words)}"
    out.save_json(
        lambda: (
            {"command": [*python, *program], "machine": describe(), "notes": notes, "absent": asked.absent}
            | report.data(outcome)
        )
    )
    page = Page(
        title=words,
        when=f"{outcome.started}, {outcome.seconds:.0f} s on {os.uname().nodename}",
        lead=verdict.sentences,
        tables=[table],
        pictures=[picture(outcome)],
        notes=notes,
        repeat={"All of it": words} | {f"Once, under {name}": how for name, how in hows.items()},
        machine=describe(),
    )
    out.save_html(page.html)
    out.save_plot([picture(outcome)])


def _duration(amount: float) -> str:
    if amount < 90:
        return f"{max(1, round(amount))} s"
    return f"{amount / 60:.0f} min" if amount < 5400 else f"{amount / 3600:.1f} h"

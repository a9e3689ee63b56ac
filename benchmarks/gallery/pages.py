"""The pages of the gallery as text: rendered from the record and the catalogue, with nothing typed in by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.gallery.catalogue import Program
from benchmarks.gallery.facts import Figures, facts
from benchmarks.gallery.record import COLUMNS
from firsttouch.tools.compare.verdict import LEAST, margin
from firsttouch.tools.measuring.report import Table
from firsttouch.tools.measuring.statistics import Estimate

_HEAD = "<!-- Written by `make gallery`; `make gallery-render` writes it again from recorded.json. -->\n"

_INTRODUCTION = """# Gallery

Ten programs that people know, as tutorials write them: none of them mentions firsttouch. Each page has the program,
what `firsttouch advise` says about it after one run, what `firsttouch compare` measures, and the reason. Programs that
gain nothing are here too, so that you recognize your own.
"""

_READING = """
*Speed-up* is how many times as fast the program is on `pool()` as on NumPy's own memory, start-up and imports included:
the median of interleaved rounds with its 95 % interval. Processor time is disturbed less than wall time by whatever
else runs on the machine. *Noise* is the default compared with itself, which shows what cannot be distinguished. The
verdict is `compare`'s: faster or slower only if the whole interval lies beyond the noise, and at least 2 % from 1.
"""

_HOW = """
Each program ran in one thread (`OMP_NUM_THREADS=1`, `OPENBLAS_NUM_THREADS=1`) on a machine that other programs used as
well; the commands are as shown, with `--json` and `--budget` added. `make gallery` repeats all of it, and
`make gallery-render` writes the pages again from what was recorded.
"""


def ratio(estimate: Estimate) -> str:
    """Return a speed-up with its interval."""
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"


def verdict(figures: Figures) -> str:
    """Return the verdict of `compare`; where the noise hides even large differences, it says so."""
    if figures.measured != "no difference":
        return f"**{figures.measured}**"
    noise = margin(figures.noise)
    return figures.measured if noise <= LEAST else f"within the noise of {100 * noise:.0f} %"


def console(command: str, text: str) -> str:
    """Return a command with what it printed; lines that a terminal of 80 columns would break are broken here."""
    lines = [
        part for line in text.split("\n") for part in (textwrap.wrap(line, COLUMNS) if len(line) > COLUMNS else [line])
    ]
    text = "\n".join(lines)
    return f"```console\n$ {command}\n{text}\n```\n"


def page(program: Program, record: dict[str, Any], machine: Mapping[str, str]) -> str:
    """Return the page of one program."""
    figures = Figures(record)
    why = program.why.strip().format_map(facts(program, figures))
    versions = {"Python": machine["Python"], "NumPy": machine["NumPy"], **record["versions"]}
    versions["firsttouch"] = machine["firsttouch"]
    used = ", ".join(f"{name} {number}" for name, number in versions.items())
    recorded = (
        f"Recorded on {record['date']} in {record['compare']['rounds']} rounds with {used}, on {machine['CPU']},"
        f" {machine['cores']}, kernel {machine['kernel']}. The whole machine is described in {{doc}}`index`."
    )
    name = program.path.name
    return "\n".join(
        [
            _HEAD,
            f"# {program.title}\n",
            f"{program.about.strip()}\n",
            f"```{{literalinclude}} {program.file}\n:language: python\n```\n",
            "## What one run suggests\n",
            console(f"firsttouch advise {name}", record["advise"]["text"]),
            "## What a comparison measures\n",
            console(f"firsttouch compare {name}", record["compare"]["text"]),
            f"```{{raw}} html\n:file: pictures/{program.name}.svg\n```\n",
            "Medians of the processor time, and the wall time of every run.\n",
            "## Why\n",
            f"{why}\n",
            "---\n",
            f"*{recorded}*\n",
        ]
    )


def index(programs: Sequence[Program], recorded: Mapping[str, Any]) -> str:
    """Return the page with all programs, the largest gain first."""
    found = [(program, Figures(recorded["programs"][program.name])) for program in programs]
    found.sort(key=lambda one: -one[1].processor_gain.value)
    columns = (
        "program",
        "speed-up",
        "by processor time",
        "noise",
        "verdict",
        "`advise` says",
        "page faults, plain and pooled",
    )
    table = Table("", columns)
    for program, figures in found:
        known = facts(program, figures)
        table.rows.append(
            (
                f"{{doc}}`{program.title} <{program.name}>`",
                ratio(figures.gain),
                ratio(figures.processor_gain),
                ratio(figures.noise),
                verdict(figures),
                f"{figures.advised}, {known['share']}",
                f"{known['faults']}, {known['pool_faults']}",
            )
        )
    machine = Table("", ("what", "value"), [(key, value) for key, value in recorded["machine"].items()])
    names = "\n".join(program.name for program, _ in found)
    return "\n".join(
        [
            _HEAD,
            _INTRODUCTION,
            table.markdown(),
            _READING,
            "## The machine\n",
            machine.markdown(),
            _HOW,
            f"```{{toctree}}\n:hidden:\n\n{names}\n```\n",
        ]
    )

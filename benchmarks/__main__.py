"""Ask the questions of benchmarks/experiments, print the answers, and keep them in target/bench.

Of each experiment, NAME.md has the tables, and NAME.json every reply. BENCHMARKS.md is written by hand from the tables.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
from pathlib import Path

from benchmarks import peers
from benchmarks.experiments import NAMES
from benchmarks.measuring import Section, conduct, markdown, table_markdown
from firsttouch._firsttouch import headroom
from firsttouch.tools.measuring.machine import describe
from firsttouch.tools.measuring.report import Table
from firsttouch.tools.measuring.worker import touch

RESULTS = Path(__file__).parents[1] / "target" / "bench"


def run(name: str, quick: bool) -> Section:
    """Run one experiment, and record how it was run."""
    module = importlib.import_module(f"benchmarks.experiments.{name}")
    return conduct(lambda: module.run(quick), quick)


def keep(folder: Path, section: Section, machine: str) -> None:
    """Write what an experiment found."""
    (folder / f"{section.name}.md").write_text(f"{markdown(section)}\n{machine}")
    (folder / f"{section.name}.json").write_text(json.dumps(section.raw, indent=1))


def main() -> int:
    """Run the named experiments, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"experiments to run: {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="few rounds and sizes, only to test the experiments")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="default: target/bench")
    given = parser.parse_args()
    for name in given.names:
        if name not in NAMES:
            parser.error(f"unknown experiment {name!r}: there are {', '.join(NAMES)}")
    try:  # now, not after hours
        given.results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # so that runs are repeatable
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([str(peers.FOLDER), os.environ.get("LD_LIBRARY_PATH", "")])
    if not given.quick:
        peers.fetch()
    machine = table_markdown(Table("The machine", ("what", "value"), list(describe().items())))
    print(machine, flush=True)
    if not given.quick:
        touch(int(headroom() * 0.8))
    for name in given.names or NAMES:
        section = run(name, given.quick)
        print(markdown(section), flush=True)
        keep(given.results, section, machine)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Runs the programs of docs/gallery under `firsttouch advise` and `firsttouch compare`: the figures of its page.

    python -m benchmarks.gallery [NAME...]

What both commands print, and their JSON, is kept in target/gallery; the table at the end is that of the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "target" / "gallery"


class Program(NamedTuple):
    """A program, the argument with which it ends within seconds, and the packages that it needs."""

    file: str
    small: str
    packages: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Its file."""
        return ROOT / self.file


PROGRAMS = {
    "option_pricing": Program("docs/gallery/programs/option_pricing.py", "1000"),
    "climate": Program("docs/gallery/programs/climate.py", "2", ("xarray", "pandas")),
    "lattice_boltzmann": Program("benchmarks/programs/lattice_boltzmann.py", "1"),
    "mandelbrot": Program("docs/gallery/programs/mandelbrot.py", "40"),
    "etl_pandas": Program("benchmarks/programs/etl_pandas.py", "1", ("pandas",)),
    "color_quantization": Program("docs/gallery/programs/color_quantization.py", "200", ("sklearn",)),
    "svd_compression": Program("docs/gallery/programs/svd_compression.py", "60", ("skimage",)),
    "spectrogram": Program("docs/gallery/programs/spectrogram.py", "0.2", ("scipy",)),
    "ode_sweep": Program("docs/gallery/programs/ode_sweep.py", "2", ("scipy",)),
    "image_restoration": Program("docs/gallery/programs/image_restoration.py", "40", ("skimage", "scipy")),
}


def told(command: str, name: str, *options: str) -> dict[str, Any]:
    """Run a command of firsttouch on a program, show what it prints, and return its JSON."""
    file, path = RESULTS / f"{name}.{command}.json", PROGRAMS[name].path
    words = [sys.executable, "-m", "firsttouch", command, "--json", str(file), *options, path.name]
    # In one thread, so that other programs on a small machine disturb them less.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(words, cwd=path.parent, env=environment, check=True)
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def row(name: str) -> str:
    """Return a program's line of the table."""
    advised, compared = told("advise", name), told("compare", name)
    by_name = {each["name"]: each for each in compared["contenders"]}
    plain, pool = by_name["the default"], by_name["pool()"]
    faults = [sorted(run["minor_faults"] for run in each["runs"])[len(each["runs"]) // 2] for each in (plain, pool)]
    verdicts = (word for word in ("faster", "slower") if pool["name"] in compared["advice"][word])
    intervals = (pool["speedup"], compared["noise"])
    cells = [name, *(f"{of['value']:.2f} ({of['low']:.2f} to {of['high']:.2f})" for of in intervals)]
    cells += [next(verdicts, "within the noise"), f"{advised['verdict']}", *map("{:,}".format, faults)]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Run the named programs, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {', '.join(PROGRAMS)}")
    given = parser.parse_args()
    for name in given.names:
        if name not in PROGRAMS:
            parser.error(f"unknown program {name!r}: there are {', '.join(PROGRAMS)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = [row(name) for name in given.names or PROGRAMS]
    print(
        "| program | speed-up | noise | verdict | advised | faults | of the pool |", "|" + "---|" * 7, *rows, sep="\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

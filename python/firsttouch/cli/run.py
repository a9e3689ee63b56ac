"""`firsttouch run`: put the options in the environment and become the real python."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from firsttouch.cli import interpreter, program, report_file, serving, start_file
from firsttouch.cli.parser import BadUsageError, Parser

VARIABLE = "FIRSTTOUCH_RUN"

_USAGE = "firsttouch run [options] script.py | -m module | -c code  [arguments of the program]"

_DESCRIPTION = """\
Run an unmodified NumPy program on memory that is kept and used again, instead of fetched from
the kernel page by page for every temporary array. The program runs as `python` would run it; a
short report follows on standard error. Processes that it starts with multiprocessing,
concurrent.futures or joblib are on pooled memory as well.
"""

_EXAMPLES = """\
for example:
  firsttouch run script.py data.csv         as python script.py data.csv
  firsttouch run -m package.module          as python -m package.module
  firsttouch run --json report.json -q script.py
  firsttouch run --allocator 'limited(pool(), "4 GiB")' script.py
  firsttouch run --json report-%p.json script.py      a file for each process it starts
  mpirun -n 4 firsttouch run --json rank-%r.json script.py
  python -X dev -W error -m firsttouch run script.py  python's own options go before

options of firsttouch come before the program; all that follows it is the program's own.
"""


def main(words: Sequence[str]) -> int:
    """Check everything that can be checked, then exec; comes back only with an error."""
    parser = _parser()
    own, found = program.split(words, ("--json", "--allocator", "--max-idle", "--decay"))
    for word in own:
        if parser.unknown(word) and (advice := program.hint(word)):
            raise BadUsageError(f"run: {advice}")
    given = parser.parse(own)
    settings = _settings(given)
    if found is None:
        raise BadUsageError("run: which program? A script, -m module or -c code (try firsttouch run --help)")
    if re.fullmatch("[KMGT]i?B?", found.words[0], re.IGNORECASE) and not found.can_start:
        raise BadUsageError(f'run: no program {found.words[0]}; a size with a space takes quotes, as in "4 GiB"')
    command = interpreter.command()
    start_file.check(command)
    _become([*command, *found.words], _environment(settings, found))


def _parser() -> Parser:
    parser = Parser("run", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add(
        "--json",
        metavar="FILE",
        help="write the report as JSON, too; %%r stands for the MPI or Slurm rank, %%p for the process"
        " (each process that ends of itself then writes its own), - for standard output",
    )
    add("-q", "--quiet", action="store_true", help="no report on standard error")
    add(
        "--allocator",
        metavar="EXPRESSION",
        help="what serves the arrays, written as in Python: mimalloc, 'pool(pages(huge=\"thp\"), decay=30)'"
        " (default: pool())",
    )
    add(
        "--max-idle",
        metavar="SIZE",
        help='keep at most this much unused memory, as in 512MiB or "4 GiB" (default: by the machine)',
    )
    add(
        "--decay",
        metavar="SECONDS",
        help="give unused memory back after about this time (default: 1), or never",
    )
    return parser


def _settings(given: Any) -> dict[str, Any]:
    """Turn the options into what travels; those that were not given stay out."""
    settings: dict[str, Any] = {}
    if given.quiet:
        settings["quiet"] = True
    if given.json is not None:
        settings["json"] = report_file.absolute(given.json)
    if given.allocator is not None:
        settings["allocator"] = serving.checked(given)
    if given.max_idle is not None:
        settings["max_idle"] = _size(given.max_idle)
    if given.decay is not None:
        settings["decay"] = _seconds(given.decay)
    return settings


def _size(text: str) -> int:
    from firsttouch import _firsttouch

    try:
        return _firsttouch.parse_size(text)
    except (ValueError, OverflowError) as error:
        raise BadUsageError(f"run: --max-idle: {error}") from None


def _seconds(text: str) -> float | None:
    if text.strip().lower() == "never":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise BadUsageError(f"run: --decay: {text!r} is no time; give seconds, as in 0.5 or 30, or never")
    return seconds


def _environment(settings: dict[str, Any], found: program.Program) -> dict[str, str]:
    environment = dict(os.environ)
    outer = environment.pop(VARIABLE, "")
    if found.can_start:  # else python says so itself, and there is nothing to report
        settings = serving.without_rivals(_inherited(outer), settings) | settings
        settings |= {"pid": os.getpid(), "runpy": found.through_runpy}
        environment[VARIABLE] = json.dumps(settings)
        report_file.warn_early(settings.get("json"))
    return environment


def _inherited(outer: str) -> dict[str, Any]:
    """Take over what an outer `firsttouch run` was told.

    Everything, where it became this very process; for a process further down, the name of a
    report file that each process has for itself.
    """
    try:
        settings = json.loads(outer or "{}")
    except ValueError:
        return {}
    if not isinstance(settings, dict) or settings.get("pid") == os.getpid():
        return settings if isinstance(settings, dict) else {}
    file = settings.get("json")
    return {"json": file} if file and report_file.one_per_process(file) else {}


def _become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    if os.name == "nt":  # exec there starts another process and does not wait for it
        raise SystemExit(subprocess.call(command, env=environment))
    try:
        os.execve(command[0], command, environment)
    except (OSError, ValueError) as error:
        raise BadUsageError(f"run: could not start {command[0]}: {error}") from None

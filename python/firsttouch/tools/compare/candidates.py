"""The contenders of a comparison: the environments in which the same command is started."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from firsttouch.tools import inherited, preload
from firsttouch.tools.measuring.contenders import FOREIGN, HUGE_GLIBC, TUNED_GLIBC, Contender, preloaded

DEFAULT = Contender("the default")
AGAIN = Contender("the same again")  # for A/A: the difference between two equal contenders
POOL = Contender("pool()", install=True)
PRELOADED = Contender("preloaded pool", {"LD_PRELOAD": preload.FILE}, install=True)

#: Included by --all, in addition to the pool.
_MORE = ("pool(pages())", "mimalloc()", "jemalloc()")
_MALLOCS = ("malloc", "hoard")


def chosen(
    everything: bool, expressions: Sequence[str], any_program: bool = False
) -> tuple[list[Contender], list[str]]:
    """Return the contenders, the default and its double first, and the names of libraries that are not installed.

    With `any_program`, the program may be in any language, and contenders differ in malloc itself.
    """
    peers, absent = preloaded() if everything else ([], [])
    named = [*(_MORE if everything else ()), *expressions]
    named = [expression for expression in dict.fromkeys(named) if expression != POOL.name]
    served = [Contender(expression, install=expression) for expression in named]
    libraries = [Contender(f"{peer.name} preloaded", peer.environment) for peer in peers]
    mallocs = [PRELOADED, TUNED_GLIBC, HUGE_GLIBC] if any_program or everything else [TUNED_GLIBC]
    if preload.missing():
        mallocs = [malloc for malloc in mallocs if malloc != PRELOADED]
        absent = [*absent, os.path.basename(preload.FILE)] if any_program or everything else absent
    return [DEFAULT, AGAIN, POOL, *served, *mallocs, *libraries], absent


def served(contender: Contender) -> bool:
    """Return whether firsttouch serves this contender."""
    return contender.install is not False


def environment(contender: Contender, report: str | None = None) -> dict[str, str]:
    """Return the program's environment: the caller's variables, without those that would configure a contender.

    `report` is a folder: each process of a served program writes a file there.
    """
    kept = {key: value for key, value in inherited.environment().items() if not key.startswith(FOREIGN)}
    kept.setdefault("PYTHONHASHSEED", "0")  # the order of sets must not differ between runs
    found = {**kept, **contender.environment}
    files = [*([found["LD_PRELOAD"]] if "LD_PRELOAD" in found else []), *_of_callers()]
    if files:
        found["LD_PRELOAD"] = ":".join(files)
    file = None if report is None else f"{report.replace('%', '%%')}/%p.json"
    if contender == PRELOADED:
        found[preload.VARIABLE] = f"quiet=1 json={file}" if file else "quiet=1"
    elif served(contender):
        settings: dict[str, object] = {"quiet": True}
        if isinstance(contender.install, str):
            settings["allocator"] = contender.install
        if file is not None:
            settings["json"] = file
        found["FIRSTTOUCH_RUN"] = json.dumps(settings)
    return found


def _of_callers() -> list[str]:
    """Return the caller's preloaded libraries that are not mallocs."""
    files = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return [file for file in files if not any(word in Path(file).name for word in _MALLOCS)]


def left_out() -> list[str]:
    """Return the caller's settings that no contender gets."""
    names = {name for name in os.environ if name.startswith(FOREIGN)}
    if "LD_PRELOAD" in names and _of_callers() == os.environ["LD_PRELOAD"].replace(":", " ").split():
        names.remove("LD_PRELOAD")
    return sorted(names)


def how(contender: Contender, program: Sequence[str], python: Sequence[str]) -> str:
    """Return the command line of a run under this contender; `python` is empty if the program is any command."""
    words = shlex.join(program)
    if contender == PRELOADED:
        return f"firsttouch run {'--all ' if python else ''}{words}"
    if served(contender) and python:
        option = f"--allocator {shlex.quote(contender.install)} " if isinstance(contender.install, str) else ""
        return f"firsttouch run {option}{words}"
    settings = dict(contender.environment)
    if served(contender):
        settings["FIRSTTOUCH_RUN"] = environment(contender)["FIRSTTOUCH_RUN"]
    variables = "".join(f"{name}={shlex.quote(value)} " for name, value in settings.items())
    return f"{variables}{'python ' if python else ''}{words}"

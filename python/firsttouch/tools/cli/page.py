"""The page of `firsttouch run --html`: the report of a program, once it has ended."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from _firsttouch_start import speak
from firsttouch.tools.cli import BadUsageError, files, output, program

if TYPE_CHECKING:
    from firsttouch.tools.cli.program import Program


#: The status of a program that was not started; the reason is said.
_REFUSED = 2


def of_run(given: Any, found: Program, run: Callable[[], int]) -> int:
    """Run the program, which returns its status, and write its report as a page; return its exit status."""
    if given.json is not None and (given.json == "-" or files.fields(given.json)):
        raise BadUsageError("run: --html is for one process: the file of --json may have no %p or %r")
    output.need("run", "jinja2")
    path = files.absolute(given.html, "run", "--html")
    files.refuse("run", given.html, path)
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        if given.json is None:
            given.json = files.escape(os.path.join(folder, "report.json"))
        report = files.fill(files.pattern(given.json))
        before = files.version(report)
        status = run()
        if files.version(report) not in (None, before):
            with open(report, encoding="utf-8") as file:
                _write(path, shlex.join(found.words), json.load(file))
        elif status != _REFUSED and not files.rank():  # the other ranks of MPI report nothing
            speak.line("no page: the program left no report, as it was killed, ended by os._exit or never started")
    return program.passed_on(status)


def _write(path: str, words: str, report: dict[str, Any]) -> None:
    from firsttouch.tools.measuring.report import Page, Table

    rows = Table("", ("", ""), list(report["rows"].items()))
    repeat = {"Measure it": f"firsttouch compare {words}"}
    page = Page(f"firsttouch run {words}", [report["conclusion"]], [rows], notes=report["remarks"], repeat=repeat)
    output.Output("run", html=path).save(dict, page)

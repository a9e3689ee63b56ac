"""``%load_ext firsttouch`` in Jupyter and IPython: the magics ``%firsttouch`` and ``%%firsttouch``."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

import firsttouch
from firsttouch import _firsttouch, process
from firsttouch._firsttouch import Allocator
from firsttouch._internal import process_memory, tables, units

NAME = "firsttouch"


def load(shell: InteractiveShell) -> None:
    """Add the magics; nothing is installed until one is used."""
    shell.register_magics(FirsttouchMagics)


def unload(shell: InteractiveShell) -> None:
    """Remove the magics; an installed allocator stays."""
    for kind in shell.magics_manager.magics.values():
        kind.pop(NAME, None)


_OWN = ("pool", "pool()")
_WORDS = ("off", "stats", "trim")
_REFUSED = (ValueError, TypeError, firsttouch.process.UnsupportedError)


@magics_class
class FirsttouchMagics(Magics):  # type: ignore[misc] # (IPython's decorators and bases are not typed)
    """Magics that choose the allocator of a notebook's arrays."""

    @line_cell_magic  # type: ignore[untyped-decorator]
    def firsttouch(self, line: str, cell: str | None = None) -> None:
        """Choose the allocator of NumPy's arrays, or report on it.

        %firsttouch          shows the current allocator
        %firsttouch pool     installs an allocator: an expression such as pool(max_idle="1 GiB"), or a variable
        %firsttouch off      uninstalls it
        %firsttouch stats    shows its statistics
        %firsttouch trim     returns idle memory to the operating system

        %%firsttouch [pool]  runs a cell with an allocator, or with the current one, and reports on the cell
        """
        word = line.partition("#")[0].strip()  # expressions contain no #
        if cell is None:
            self._line(word)
        else:
            self._cell(word, cell)

    def _line(self, word: str) -> None:
        if word == "off":
            firsttouch.uninstall()
        elif word == "stats":
            stats = firsttouch.stats()
            _show("\n".join(f"{name:26}{number:>20,}" for name, number in stats.as_dict().items()), stats._repr_html_())
            return
        elif word == "trim":
            print(f"returned: {units.size(firsttouch.trim())}")
            return
        elif word:
            self._install(word)
        found = process.serving()
        print("NumPy's own memory serves" if found is None else f"{found!r} serves", "NumPy's arrays")

    def _cell(self, word: str, cell: str) -> None:
        if self.shell.should_run_async(cell, transformed_cell=self.shell.transform_cell(cell)):
            raise UsageError("%%firsttouch cannot run a cell with await at its top level: use %firsttouch")
        if word in _WORDS:
            raise UsageError(f"%%firsttouch takes an allocator, and {word!r} is for a line: %firsttouch {word}")
        before = process.serving()
        if word or before is None:
            self._install(word or "pool")
        try:
            text, report, error = measured(self.shell, cell, process.serving() or _firsttouch.default_pool())
        finally:
            if before is None:
                firsttouch.uninstall()
            else:
                firsttouch.install(before)
        _show(text.rstrip("\n"), tables.html(report["conclusion"], report["rows"].items(), report["remarks"]))
        if error is not None:
            raise CellError(f"{type(error).__name__}: {error}") from None

    def _install(self, word: str) -> None:
        try:
            firsttouch.install(self._allocator(word))
        except _REFUSED as error:
            said = " ".join(str(error).split())
            raise UsageError(f"{said}; and the words {', '.join(_WORDS)}" if "no allocator" in said else said) from None

    def _allocator(self, word: str) -> Allocator | str:
        """Return the allocator of a variable or an expression; ``pool`` alone is the process's own."""
        named = self.shell.user_ns.get(word)
        if isinstance(named, Allocator):
            return named
        return "process" if word in _OWN else word


def _show(text: str, html: str) -> None:
    """Show a table in a notebook, and the text on a terminal."""
    display({"text/plain": text, "text/html": html}, raw=True)


class CellError(Exception):
    """Ends the outer cell after the inner one failed; the inner traceback is already shown above the report."""

    def _render_traceback_(self) -> list[str]:
        return []


def measured(
    shell: InteractiveShell, cell: str, allocator: Allocator
) -> tuple[str, dict[str, Any], BaseException | None]:
    """Run ``cell`` in the notebook's namespace; return the report, as text and as data, and its exception, if any."""
    with contextlib.suppress(OSError):  # not every container allows it, and the peak is then the process's
        process_memory.reset_peak()
    start = _firsttouch.ReportStart.now(allocator)
    result: Any = shell.run_cell(cell, silent=_is_quiet(shell, cell))
    facts = {"main_process": True, "numpy": np.__version__}
    text, data = _firsttouch.report(facts, start, True, allocator)
    return text, json.loads(data), result.error_before_exec or result.error_in_exec


def _is_quiet(shell: InteractiveShell, cell: str) -> bool:
    """Return whether a semicolon at the end hides the value; IPython looks at the whole input, which is a magic."""
    try:
        return bool(shell.displayhook.semicolon_at_end_of_expression(shell.transform_cell(cell)))
    except Exception:  # a mistake that shows when the cell runs
        return False

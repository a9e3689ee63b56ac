"""Shows the progress of a measurement as a bar on standard error, if that is a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from firsttouch.tools.measuring.console import say


class Bar:
    """Draws nothing if standard error is not a terminal, or with --quiet."""

    def __init__(self, what: str, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.console = Console(stderr=True, highlight=False, markup=False, quiet=quiet)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=self.console,
            transient=True,
            refresh_per_second=2,  # drawing disturbs what is measured
            disable=quiet or not self.console.is_terminal,
        )
        self._task = self._progress.add_task(what, total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        say(text, self.console)

    def done(self, part: float, what: str | None = None) -> None:
        """Set the completed fraction, from 0 to 1; `what` names the next step if it is a different one."""
        self._progress.update(self._task, total=1.0, completed=part, description=what)

"""Starts the program, with its options in the environment, in this process or in a child."""

from __future__ import annotations

import os

from _firsttouch_start import VARIABLE
from _firsttouch_start import settings as options
from firsttouch.tools.cli import files, program, serving
from firsttouch.tools.cli.parser import BadUsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn


def environment(settings: dict[str, Any], found: program.Program) -> dict[str, str]:
    """Put the settings where the start-up hook of this very process will find them."""
    environment = dict(os.environ)
    outer = environment.pop(VARIABLE, "")
    if found.can_start:  # otherwise python reports the error, and there is nothing to add
        settings = serving.without_rivals(_inherited(outer), settings) | settings
        settings |= {"pid": os.getpid(), "runpy": found.through_runpy}
        environment[VARIABLE] = options.text(settings)
    return environment


def _inherited(outer: str) -> dict[str, Any]:
    """Return the settings inherited from an outer `firsttouch run`.

    All of them if that became this very process; in a descendant only the name of a report file with one file per
    process.
    """
    try:
        settings = options.parsed(outer or "{}")
    except ValueError:
        return {}
    if not isinstance(settings, dict) or settings.get("pid") == os.getpid():
        return settings if isinstance(settings, dict) else {}
    file = settings.get("json")
    return {"json": file} if file and files.one_per_process(file) else {}


def become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the program."""
    if os.name == "nt":  # there exec starts another process and does not wait for it
        import subprocess

        raise SystemExit(subprocess.call(command, env=environment))
    try:
        os.execve(command[0], command, environment)
    except (OSError, ValueError) as error:
        raise BadUsageError(f"run: cannot start {command[0]}: {error}") from None


def run_and_wait(command: list[str], settings: dict[str, Any], found: program.Program) -> int:
    """Run the program in a child, and wait for it. Returns its status as :func:`os.waitstatus_to_exitcode` does.

    Ctrl-C reaches the program, as it would without this process, which keeps waiting. Other signals that would end this
    process are passed on to the program, those among them that mean what a program wants.
    """
    import signal

    child = os.fork()
    if child == 0:
        try:
            become([*command, *found.words], environment(settings, found))
        finally:
            os._exit(2)
    handlers: dict[int, Any] = {signal.SIGINT: signal.SIG_IGN}
    handlers |= dict.fromkeys(
        (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2), lambda number, _: os.kill(child, number)
    )
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def passed_on(status: int) -> int:
    """Return our exit status for a program's; if a signal ended the program, end this process by the same signal."""
    if status < 0:
        import signal
        import sys

        if sys.stdout is not None:
            sys.stdout.flush()  # a signal leaves no time for it
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status

"""Start the program: its options in the environment, in this very process or in a child of it."""

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
    """Put the settings where the start hook of this very process will find them."""
    environment = dict(os.environ)
    outer = environment.pop(VARIABLE, "")
    if found.can_start:  # else python says so itself, and there is nothing to report
        settings = serving.without_rivals(_inherited(outer), settings) | settings
        settings |= {"pid": os.getpid(), "runpy": found.through_runpy}
        environment[VARIABLE] = options.text(settings)
    return environment


def _inherited(outer: str) -> dict[str, Any]:
    """Take over what an outer `firsttouch run` was told.

    Everything, where it became this very process; for a process further down, the name of a
    report file that each process has for itself.
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
    if os.name == "nt":  # exec there starts another process and does not wait for it
        import subprocess

        raise SystemExit(subprocess.call(command, env=environment))
    try:
        os.execve(command[0], command, environment)
    except (OSError, ValueError) as error:
        raise BadUsageError(f"run: could not start {command[0]}: {error}") from None


def run_and_wait(command: list[str], settings: dict[str, Any], found: program.Program) -> int:
    """Let a child be the program, and wait for it; its status, as :func:`os.waitstatus_to_exitcode` has it.

    Ctrl-C reaches the program, as it would without us; whoever waits stays. What is to end us is passed on to it.
    """
    import signal

    child = os.fork()
    if child == 0:
        try:
            become([*command, *found.words], environment(settings, found))
        finally:
            os._exit(2)
    handlers: dict[int, Any] = {signal.SIGINT: signal.SIG_IGN}
    handlers |= dict.fromkeys((signal.SIGTERM, signal.SIGHUP), lambda number, _: os.kill(child, number))
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def passed_on(status: int) -> int:
    """Our own exit status for a program's; one that a signal ended is passed on as that signal."""
    if status < 0:
        import signal

        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status

"""The option --allocator: an expression that is parsed, and tried, before the program starts."""

from __future__ import annotations

from firsttouch.tools.cli.parser import BadUsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Options of the process's own pool, which an expression has for itself.
_OF_POOL = ("max_idle", "decay")


def checked(given: Any, of: str = "run") -> str:
    """The expression, if it makes an allocator that can serve a whole process; `of` is the command that asks."""
    for name in _OF_POOL:
        if getattr(given, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise BadUsageError(f"run: {option} is for the default pool; with --allocator write it as {_written(name)}")
    from firsttouch import _firsttouch

    text: str = given.allocator
    try:
        from firsttouch._internal import resolve

        allocator = resolve.parse(text)
        if _firsttouch.BACKEND:
            _firsttouch.install(allocator)  # into this process, which ends here
    except (ValueError, TypeError, MemoryError, _firsttouch.UnsupportedError) as error:
        raise BadUsageError(f"{of}: --allocator: {error}") from None
    except ImportError:
        pass  # no NumPy here, which the program may never need
    return text


def _written(name: str) -> str:
    return "pool(max_idle=...)" if name == "max_idle" else "pool(decay=...)"


def without_rivals(inherited: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What an outer run was told, less what the inner one's options for the same thing replace."""
    rivals: set[str] = set()
    if "allocator" in settings:
        rivals.update(_OF_POOL)
    elif any(name in settings for name in _OF_POOL):
        rivals.add("allocator")
    return {name: value for name, value in inherited.items() if name not in rivals}


_TRIAL = "import sys, firsttouch; firsttouch.install(sys.argv[1])"


def tried_elsewhere(command: str, expression: str) -> str:
    """The same for a command that goes on afterwards: another process tries it."""
    import subprocess

    from firsttouch.tools.measuring.starter import helper

    probe = subprocess.run(
        helper("-c", _TRIAL, expression),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode != 0:
        said = (probe.stderr.strip().splitlines() or [f"the trial process exited with status {probe.returncode}"])[-1]
        raise BadUsageError(f"{command}: --allocator: {said.partition(': ')[2] or said}")
    return expression

"""The option --allocator: an expression that is parsed and tried before the program starts."""

from __future__ import annotations

from firsttouch.tools.cli.parser import BadUsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Options of the default pool, which an expression contains itself.
_OF_POOL = ("max_idle", "decay")


def checked(given: Any, of: str = "run") -> str:
    """Return the expression if it makes an allocator that can serve a process; `of` is the calling command."""
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
            _firsttouch.install(allocator)  # in this process, which is about to end
    except (ValueError, TypeError, MemoryError, _firsttouch.UnsupportedError) as error:
        raise BadUsageError(f"{of}: --allocator: {error}") from None
    except ImportError:
        pass  # NumPy is not installed, and the program may not need it
    return text


def _written(name: str) -> str:
    return "pool(max_idle=...)" if name == "max_idle" else "pool(decay=...)"


def without_rivals(inherited: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an outer run, without those that the inner run's options replace."""
    rivals: set[str] = set()
    if "allocator" in settings:
        rivals.update(_OF_POOL)
    elif any(name in settings for name in _OF_POOL):
        rivals.add("allocator")
    return {name: value for name, value in inherited.items() if name not in rivals}


_TRIAL = "import sys, firsttouch; firsttouch.install(sys.argv[1])"


def tried_elsewhere(command: str, expression: str) -> str:
    """As `checked`, in another process, for a command that continues afterwards."""
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

"""The interpreter that the package is imported in.

NumPy and PyO3 belong to the first interpreter that loads them: a subinterpreter that tried would take them from the
main one, even where it fails.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _is_main() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # from Python 3.13 on, and before
        try:
            interpreters: Any = import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True  # there are none


def check() -> None:
    """Raise :exc:`ImportError` in a subinterpreter."""
    if not _is_main():
        raise ImportError(
            "firsttouch does not support subinterpreters, as NumPy does not: import it in the main interpreter, and "
            "use threads or processes"
        )

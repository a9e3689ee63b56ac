"""What runs before the package is imported: the command line's entry point, and the hook of `firsttouch run`.

The hook runs in every interpreter that finds FIRSTTOUCH_RUN set: firsttouch_start.pth calls :func:`begin`; from Python
3.15 on, firsttouch_start.start calls :func:`start` in its place (PEP 829). It runs before the program, so it imports
next to nothing, prints nothing and raises nothing.

PYTEST_DONT_REWRITE: pytest would rewrite the packages of a plugin, and warn if they are loaded already.
"""

import os
import sys

VARIABLE = "FIRSTTOUCH_RUN"

_is_script = False
_begun = False


def main() -> int:
    """Run the command line: the entry point of the script ``firsttouch``."""
    global _is_script
    _is_script = True
    from firsttouch.tools.cli.main import main

    return main()


def is_command_line() -> bool:
    """Return whether `firsttouch ...` or `python -m firsttouch ...` started this process."""
    if _is_script:
        return True
    # sys.argv[0] is -m while Python looks for the module; its name precedes the arguments in sys.orig_argv.
    if sys.argv[:1] != ["-m"] or len(sys.orig_argv) <= len(sys.argv):
        return False
    return sys.orig_argv[-len(sys.argv)].removeprefix("-m") == "firsttouch"


def is_main_interpreter() -> bool:
    """Return whether this is no subinterpreter."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # from Python 3.13 on, and before
        try:
            interpreters = __import__(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


def start() -> None:
    """Begin if the variable is set: the entry point in firsttouch_start.start, which is called unconditionally."""
    if os.environ.get(VARIABLE):
        begin()


def begin() -> None:
    """Watch for the first import of NumPy, and for the end of the process."""
    global _begun
    if _begun or not _is_trusted() or not is_main_interpreter():  # the files may be in two site directories
        return
    _begun = True
    try:
        from _firsttouch_start import ending, hook

        ending.watch()
        hook.watch()
    except Exception as error:
        from _firsttouch_start import speak

        speak.failure("the start", error)


def _is_trusted() -> bool:
    """Return whether this interpreter obeys its environment: not under -I or -E, nor if it is set-uid."""
    if sys.flags.ignore_environment:
        return False
    return not hasattr(os, "getuid") or (os.getuid(), os.getgid()) == (os.geteuid(), os.getegid())

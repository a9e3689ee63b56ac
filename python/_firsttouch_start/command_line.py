"""Whether this process is the command line's own, or a program that uses the package."""

import sys

_started = False


def main() -> int:
    """Run the command line: what the script ``firsttouch`` calls."""
    global _started
    _started = True
    from firsttouch.tools.cli.main import main

    return main()


def is_this_process() -> bool:
    """Whether `firsttouch ...` or `python -m firsttouch ...` started this process."""
    if _started:
        return True
    # Python says so while it looks for the module; what was asked for stands before the arguments.
    if sys.argv[:1] != ["-m"] or len(sys.orig_argv) <= len(sys.argv):
        return False
    return sys.orig_argv[-len(sys.argv)].removeprefix("-m") == "firsttouch"

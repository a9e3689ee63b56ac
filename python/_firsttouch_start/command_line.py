"""Whether this process is the command line itself, or a program that uses the package."""

import sys

_started = False


def main() -> int:
    """Run the command line: the entry point of the script ``firsttouch``."""
    global _started
    _started = True
    from firsttouch.tools.cli.main import main

    return main()


def is_this_process() -> bool:
    """Return whether `firsttouch ...` or `python -m firsttouch ...` started this process."""
    if _started:
        return True
    # sys.argv[0] is -m while Python looks for the module; its name precedes the arguments in sys.orig_argv.
    if sys.argv[:1] != ["-m"] or len(sys.orig_argv) <= len(sys.argv):
        return False
    return sys.orig_argv[-len(sys.argv)].removeprefix("-m") == "firsttouch"

"""How this same interpreter is started again for a helper process of ours."""

from __future__ import annotations

import sys


def helper(*words: str) -> list[str]:
    """Return the command of a helper: ``words`` behind the interpreter and its options.

    The current folder is not on the helper's path (``-P``): a ``json.py`` there is no business of ours. An interpreter
    that ignores the environment, or the user's own packages, has helpers that do so, too.
    """
    options = ["-P"]
    if sys.flags.isolated:
        options.append("-I")
    else:
        options += ["-E"] * sys.flags.ignore_environment + ["-s"] * sys.flags.no_user_site
    return [sys.executable, *options, *words]

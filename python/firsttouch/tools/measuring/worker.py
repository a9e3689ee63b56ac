"""A contender's process: replies to each JSON line on standard input with one on standard output."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
import warnings


def main() -> None:
    """Install the expression on the command line, if there is one; then reply until standard input ends."""
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of an experiment must not reach the pipe
    warnings.filterwarnings("error", "read without memory behind it")  # such a figure would be meaningless
    for expression in sys.argv[1:]:
        import firsttouch

        firsttouch.install(expression, trim_c_library=True)  # as `firsttouch run` does
    for line in sys.stdin:
        request = json.loads(line)
        sys.path[:] = request["path"]
        try:
            function = getattr(importlib.import_module(request["module"]), request["function"])
            reply = {"value": function(**request["arguments"])}
        except Exception:
            reply = {"error": traceback.format_exc()}
        print(json.dumps(reply), file=pipe, flush=True)


if __name__ == "__main__":
    main()

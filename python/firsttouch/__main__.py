"""`python -m firsttouch` is the command line."""

import sys

# `-m` puts the current folder first on the path, and a json.py there is no business of ours.
if not sys.flags.safe_path:
    del sys.path[0]

from firsttouch.tools.cli.main import main

raise SystemExit(main())

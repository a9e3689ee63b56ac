"""`python -m firsttouch` is the command line."""

from firsttouch.cli.main import main

raise SystemExit(main())

"""Excludes tests that need Hypothesis if it is not installed."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("hypothesis") else ["test_random.py"]

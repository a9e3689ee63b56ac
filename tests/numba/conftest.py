"""Where there is no Hypothesis the tests that need it are left out."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("hypothesis") else ["test_random.py"]

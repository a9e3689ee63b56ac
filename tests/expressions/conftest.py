"""What the locks without Hypothesis leave out."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("hypothesis") else ["test_round_trip.py"]

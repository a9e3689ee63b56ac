import importlib.util

#: Where Hypothesis is not installed, as with the oldest Python and NumPy.
collect_ignore = [] if importlib.util.find_spec("hypothesis") else ["test_machine.py"]

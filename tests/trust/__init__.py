"""A random tester of the whole system: programs of many steps over every public operation, checked after each step.

``python -m tests.trust --seconds 60`` runs programs in processes of their own until the time is up. A program that
fails is run again with fewer and fewer steps; what is left is printed, with the command that repeats it.
"""

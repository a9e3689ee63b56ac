"""Other people's tests: each must end under firsttouch as it ends without it.

``python -m tests.foreign`` runs parts of the suites of packages that live on NumPy, plainly and under several
allocators, and compares outcome by outcome. What is missing here is left out, and said so.
"""

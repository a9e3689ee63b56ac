"""What the tester is worth: each repair is taken out, and the tester has to find the defect again.

Each ``*.patch`` here takes one repair out. ``python -m tests.trust.repairs`` applies them one by one in a copy of the
checkout, builds it, lets the tester look, and writes how long it took into the table of the page on trust.
"""

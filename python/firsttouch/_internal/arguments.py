"""Types of arguments."""

from typing import Literal, TypeAlias

Size: TypeAlias = int | str
"""A size in bytes as a number, or text like ``"64 KiB"`` or ``"4 GB"``."""

Policy: TypeAlias = int | str
"""A NUMA node's number, or a policy such as ``"bind:0-1"`` or ``"interleave:all"``."""

Huge: TypeAlias = Literal[False] | str
"""``False``, ``"thp"``, or a size such as ``"2M"`` or ``"1G"``."""

"""Allocators: the sources that obtain memory, and the adaptors that stand on another allocator.

Each function returns an :class:`Allocator`, whose ``repr`` is the expression that makes it. The same expression, as
text, is accepted wherever an allocator is. The functions come from the native module, where the file of each allocator
declares it with its options (``SPECS``).
"""

from firsttouch import _firsttouch
from firsttouch._allocators import *  # noqa: F403 (those of the declaration)
from firsttouch._firsttouch import Allocator, from_functions, numpy_default

__all__ = ["Allocator", "from_functions", "numpy_default"]
__all__ += _firsttouch._allocators.__all__
__all__.sort()

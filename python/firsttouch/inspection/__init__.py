"""Inspection: which pages of an array exist, what they are, and where they lie.

None of these functions touches a page, and none needs privileges.
"""

from firsttouch.inspection.backing import NotBackedWarning, check_backed, is_backed
from firsttouch.inspection.drawing import plot_pagemap
from firsttouch.inspection.inspection import Inspection, inspect
from firsttouch.inspection.page_map import PageMap, pagemap
from firsttouch.inspection.states import PageSource, PageState

__all__ = [
    "Inspection",
    "NotBackedWarning",
    "PageMap",
    "PageSource",
    "PageState",
    "check_backed",
    "inspect",
    "is_backed",
    "pagemap",
    "plot_pagemap",
]

"""What is behind an array: which of its pages exist, what they are, where they lie, and who says so.

Nothing here touches a page that it asks about, and nothing needs privileges.
"""

from firsttouch.inspection.backing import NotBackedWarning, check_backed, is_backed
from firsttouch.inspection.drawing import plot_pagemap
from firsttouch.inspection.inspection import Inspection, inspect
from firsttouch.inspection.page_map import pagemap
from firsttouch.inspection.states import PageSource, PageState

__all__ = [
    "Inspection",
    "NotBackedWarning",
    "PageSource",
    "PageState",
    "check_backed",
    "inspect",
    "is_backed",
    "pagemap",
    "plot_pagemap",
]

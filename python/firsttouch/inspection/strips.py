"""Many pages in few columns, so that nothing that occurs is lost."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from firsttouch.inspection.states import PageState

COLUMNS, ROWS = 1200, 60
#: Rows that the rarest state gets in a column.
LEAST = 3


def image(states: npt.NDArray[np.uint8], order: Sequence[PageState]) -> npt.NDArray[np.intp]:
    """Places in ``order``, rows from the top by columns; each column shares its rows out as its pages are."""
    pages = np.asarray(states)
    columns = min(COLUMNS, pages.size)
    first = np.arange(columns) * pages.size // columns
    counts = np.array([np.add.reduceat(pages == state, first, dtype=np.intp) for state in order])
    shares = counts / counts.sum(axis=0)
    heights = np.maximum(np.floor(shares * ROWS), LEAST * (counts > 0)).astype(np.intp)
    heights[heights.argmax(axis=0), np.arange(columns)] += ROWS - heights.sum(axis=0)
    ends = heights.cumsum(axis=0)
    rows = np.arange(ROWS)[::-1, None, None]
    return np.asarray((rows >= ends.T[None]).sum(axis=2), np.intp)

"""Draws an array's pages: a strip for each moment, coloured by the states of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from _firsttouch_start import units
from firsttouch.inspection import PageMap, PageState, pagemap

if TYPE_CHECKING:
    import numpy.typing as npt

#: From the bottom of a strip to its top: resident memory fills it like a level. Distinguishable with any colour
#: vision.
LOOKS = {
    PageState.HUGE: ("huge pages", "#0b4f8a"),
    PageState.SMALL: ("small pages", "#56b4e9"),
    PageState.REAL: ("small or huge pages", "#2f86c4"),
    PageState.CACHED: ("page cache only", "#009e73"),
    PageState.SWAPPED: ("swapped", "#d55e00"),
    PageState.PRESENT: ("real or zero page", "#cc79a7"),
    PageState.ZERO: ("shared zero page", "#f0b429"),
    PageState.ABSENT: ("not there yet", "#e9e9e6"),
    PageState.UNKNOWN: ("not known", "#4d4d4d"),
}
_STRIP, _APART = 1.0, 0.75
COLUMNS, ROWS = 1200, 60
#: The minimum number of rows for a state that occurs in a column.
LEAST = 3


def plot_pagemap(*moments: npt.NDArray[Any] | PageMap, labels: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Draw the pages of an array, one strip per moment.

    Parameters
    ----------
    *moments : ndarray or PageMap
        What :func:`pagemap` returned earlier, or an array to be drawn as it is now.
    labels : sequence of str, optional
        Label of each strip. The default for two is "before" and "after".
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is made.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed (``pip install 'firsttouch[plot]'``).
    TypeError
        If a moment is not a NumPy array.
    ValueError
        If there is no moment, or not one label for each.

    See Also
    --------
    pagemap : The states that are drawn.

    Notes
    -----
    Pages run from left to right in the order of their addresses. Where there are more pages than columns, a column is
    divided in proportion, and every state that occurs in it gets at least a line.

    Examples
    --------
    >>> a = ft.pages().zeros(10**6)
    >>> before = ft.inspection.pagemap(a)
    >>> a[: len(a) // 2] = 1
    >>> ft.inspection.plot_pagemap(before, a)
    <Axes: xlabel="place in the array's pages, MiB">

    """
    if not moments:
        raise ValueError("plot_pagemap() needs an array, or what pagemap() returned")
    maps = [moment if isinstance(moment, PageMap) else pagemap(moment) for moment in moments]
    names = list(labels) if labels is not None else _names(len(maps))
    if len(names) != len(maps):
        raise ValueError(f"labels={names!r}: give one for each of the {len(maps)} moments")
    ax = _axes(len(maps)) if ax is None else ax
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    colours = ListedColormap([colour for _, colour in LOOKS.values()])
    widest = max(1, *(found.states.size * found.page_size for found in maps))
    per, unit = units.scale(widest)
    for at, (found, name) in enumerate(zip(maps, names, strict=True)):
        bottom = (len(maps) - 1 - at) * (_STRIP + _APART)
        width = found.states.size * found.page_size / per
        if found.states.size:
            where, last = (0, width, bottom, bottom + _STRIP), len(LOOKS) - 1
            drawn = image(found.states, list(LOOKS))
            ax.imshow(drawn, colours, extent=where, vmin=0, vmax=last, aspect="auto", interpolation="nearest")
        ax.plot(
            [0, width, width, 0, 0],
            [bottom, bottom, *[bottom + _STRIP] * 2, bottom],
            color="#808080",
            lw=0.6,
            clip_on=False,
        )
        ax.text(0, bottom + _STRIP + 0.1, name, ha="left", va="bottom", weight="bold", fontsize=9)
        ax.text(widest / per, bottom + _STRIP + 0.1, _summary(found), ha="right", va="bottom", fontsize=9)
    ax.set(xlim=(0, widest / per), ylim=(-0.1, len(maps) * (_STRIP + _APART) - 0.1), yticks=[])
    ax.set_xlabel(f"place in the array's pages, {unit}")
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    seen = [look for state, look in LOOKS.items() if any(state in found.counts() for found in maps)]
    patches = [Patch(facecolor=colour, edgecolor="#808080", lw=0.6, label=label) for label, colour in seen]
    below = ax.transAxes + ScaledTranslation(0, -0.45, ax.figure.dpi_scale_trans)  # inches, under the axis' label
    ax.legend(
        handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=below, ncols=5, frameon=False
    )
    return ax


def image(pages: npt.NDArray[np.uint8], order: Sequence[PageState]) -> npt.NDArray[np.intp]:
    """Return indices into ``order``, rows from the top by columns; a column is divided among its states."""
    columns = min(COLUMNS, pages.size)
    first = np.arange(columns) * pages.size // columns
    counts = np.array([np.add.reduceat(pages == state, first, dtype=np.intp) for state in order])
    shares = counts / counts.sum(axis=0)
    heights = np.maximum(np.floor(shares * ROWS), LEAST * (counts > 0)).astype(np.intp)
    heights[heights.argmax(axis=0), np.arange(columns)] += ROWS - heights.sum(axis=0)
    ends = heights.cumsum(axis=0)
    rows = np.arange(ROWS)[::-1, None, None]
    return np.asarray((rows >= ends.T[None]).sum(axis=2), np.intp)


def _names(count: int) -> list[str]:
    return {1: [""], 2: ["before", "after"]}.get(count, [str(number) for number in range(1, count + 1)])


def _summary(found: Any) -> str:
    """Return the sizes of the states that occur, the largest first."""
    counts = sorted(found.counts().items(), key=lambda each: -each[1])
    return ", ".join(f"{units.size(count * found.page_size)} {LOOKS[state][0]}" for state, count in counts) or "empty"


def _axes(count: int) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"plot_pagemap() needs matplotlib ({error}): pip install 'firsttouch[plot]'") from None
    return pyplot.subplots(figsize=(9, 1.3 + 0.75 * count), layout="constrained")[1]

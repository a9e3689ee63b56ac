"""The runs as a picture: a strip of dots for each contender, with the box of their quartiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsttouch.tools.compare import candidates
from firsttouch.tools.compare.comparison import Outcome, Row
from firsttouch.tools.compare.figures import column, quartiles
from firsttouch.tools.measuring.picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's, which people with any vision tell apart, on light and on dark.
_DEFAULT, _OURS, _PEER = "#999999", "#0072b2", "#d55e00"


def picture(outcome: Outcome) -> Picture:
    """Wall time of every single run, from zero."""
    rows = [row for row in outcome.rows if row.runs]

    def draw(axes: Axes) -> None:
        most = max(column(row.runs, "wall").max() for row in rows)
        scale, unit = (1.0, "s") if most >= 1 else (1000.0, "ms")
        for at, row in enumerate(rows):
            _strip(axes, row, at, scale)
        axes.axvline(scale * quartiles(rows[0].runs, "wall")[1], color=_DEFAULT, lw=0.8, ls=":")
        axes.set_xlim(0, 1.04 * most * scale)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks([])
        axes.set_xlabel(f"wall time, {unit}")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)

    return Picture("runs", "Every run: a dot each, later ones below earlier ones", draw, height=0.9 + 0.5 * len(rows))


def _strip(axes: Axes, row: Row, at: int, scale: float) -> None:
    color = _OURS if candidates.served(row.contender) else _PEER
    if row.contender in (candidates.DEFAULT, candidates.AGAIN):
        color = _DEFAULT
    walls = scale * column(row.runs, "wall")
    places = [at + 0.04 + 0.3 * turn / max(1, len(walls) - 1) for turn in range(len(walls))]
    axes.scatter(walls, places, s=14, color=color, alpha=0.75, linewidths=0)
    axes.boxplot(
        walls,
        positions=[at + 0.19],
        widths=0.4,
        orientation="horizontal",
        showfliers=False,
        manage_ticks=False,
        boxprops={"color": color},
        whiskerprops={"color": color},
        capprops={"color": color},
        medianprops={"color": color, "linewidth": 2.2},
    )
    axes.text(0.005, at - 0.12, row.contender.name, transform=axes.get_yaxis_transform(), va="bottom", fontsize=9)

"""The picture of a program: where its processor time goes under each contender, and the wall time of every run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.gallery.facts import Figures, median
from firsttouch.tools.compare import report
from firsttouch.tools.measuring.picture import Picture, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of Okabe and Ito's colours, legible on light and dark backgrounds.
_PROGRAM, _KERNEL = "#999999", "#d55e00"
_WIDTH = 7.5


def processor(figures: Figures) -> Picture:
    """Return the bars of processor time, the program's own and the kernel's."""
    rows = [row for row in figures.outcome.rows if row.runs]

    def draw(axes: Axes) -> None:
        own = [median(row.runs, "user") for row in rows]
        kernel = [median(row.runs, "system") for row in rows]
        axes.barh(range(len(rows)), own, 0.6, color=_PROGRAM, label="the program")
        axes.barh(range(len(rows)), kernel, 0.6, own, color=_KERNEL, label="the kernel")
        for at, row in enumerate(rows):
            words = f"{median(row.runs, 'minor_faults'):,.0f} faults"
            axes.annotate(
                words, (own[at] + kernel[at], at), (6, 0), textcoords="offset points", va="center", fontsize=9
            )
        axes.set_yticks(range(len(rows)), [row.contender.name for row in rows])
        axes.set_xlim(0, 1.25 * max(map(sum, zip(own, kernel, strict=True))))
        axes.invert_yaxis()
        axes.set_xlabel("processor time, s")
        axes.legend(loc="upper center", bbox_to_anchor=(0.4, 1.25), ncols=2, frameon=False)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)

    return Picture("processor", "Processor time", draw, height=2.5)


def responsive(text: str, words: str) -> str:
    """Return an `svg` element that is as wide as the page allows, and named for those who cannot see it."""
    _, rest = text.replace("*{", "svg[role=img] *{").split(">", 1)  # in a page, a style is the whole page's
    box = text.split('viewBox="', 1)[1].split('"', 1)[0]
    width = float(box.split()[2])
    style = f"width: 100%; max-width: {width:.0f}pt; height: auto"
    head = f'viewBox="{box}" style="{style}" role="img" aria-label="{words}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {head}>{rest}'


def drawn(title: str, figures: Figures) -> str:
    """Return both pictures, one below the other."""
    bars = "Processor time of the program and of the kernel under each allocator"
    strips = "Wall time of every run under each allocator"
    pictures = {bars: processor(figures), strips: report.picture(figures.outcome)}
    return "".join(
        responsive(svg(Picture(f"{title}-{one.name}", one.title, one.draw, one.height), _WIDTH), words)
        for words, one in pictures.items()
    )

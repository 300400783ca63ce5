"""Figures drawn: as SVG for a page that gives it its colours or for a file of its own, as PDF and PNG for papers."""

import io
import math
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, LogLocator, MaxNLocator, NullLocator

from grape_bench.interval import Interval
from grape_bench.legend import draw_legend, room_in
from grape_bench.palette import DOTTED, INK, Style, style
from grape_bench.svg import embed, file
from grape_bench.table import Curve, Dot, Figure, Panel

_WIDTH_IN, _PANEL_IN = 9.6, 2.7  # of the whole, and the height of one panel
_DPI = 200
_LEFT_IN, _GAP_IN, _BELOW_IN, _ABOVE_IN = 0.62, 0.2, 0.5, 0.3
_RC: dict[Any, Any] = {
    "text.parse_math": False,  # a name is no formula
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "grape-bench",
    "pdf.fonttype": 42,  # letters that can be searched and edited, where the default draws shapes
    "font.family": ["DejaVu Sans"],  # to measure text by; wider than the fonts of a page, so nothing runs over
    "font.size": 8.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8.5,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.0,
}


def inline(figure: Figure) -> str:
    """An `<svg>` element for a page, in the ink of the text around it; no two figures share an id."""
    return embed(_svg(figure), figure.id, figure.caption)


def standalone(figure: Figure) -> str:
    """The text of an SVG file, which follows the reader's light or dark scheme by itself."""
    return file(_svg(figure), figure.id, figure.caption)


def printed(figure: Figure, form: str) -> bytes:
    """The bytes of a `pdf` or `png` on white, without date or program, so that they reproduce."""
    unsaid = {"pdf": ("CreationDate", "Creator", "Producer"), "png": ("Software",)}[form]
    return _rendered(figure, form, dpi=_DPI, metadata=dict.fromkeys(unsaid))


def _svg(figure: Figure) -> str:
    return _rendered(figure, "svg", transparent=True, metadata={"Date": None, "Creator": None}).decode()


def _rendered(figure: Figure, form: str, **options: Any) -> bytes:
    with matplotlib.rc_context(_RC):
        canvas, grid = _axes(figure)
        for axes, panel in zip(grid, figure.panels, strict=True):
            _panel(axes, figure, panel)
        columns = min(len(grid), 2)
        for index, (axes, panel) in enumerate(zip(grid, figure.panels, strict=True)):
            first = index % columns == 0
            axes.tick_params(labelleft=first)
            axes.set_ylabel(figure.y_label if first else "")
            if index % columns == columns - 1 or index == len(grid) - 1:  # the panels of a row have the same encodings
                draw_legend(axes, panel)
        content = io.BytesIO()
        canvas.savefig(content, format=form, **options)
        return content.getvalue()


def _axes(figure: Figure) -> tuple[Canvas, list[Axes]]:
    """Panels two in a row, with room for the legend at the right, sharing their y axis."""
    count = len(figure.panels)
    lines, columns = math.ceil(count / 2), min(count, 2)
    names = max((len(panel.curves) + len(panel.dots) for panel in figure.panels), default=0)
    height = max(_PANEL_IN, 0.17 * names)
    tall = lines * (height + _BELOW_IN + _ABOVE_IN)
    canvas = Canvas(figsize=(_WIDTH_IN, tall))
    FigureCanvasSVG(canvas)
    room = room_in(figure)
    width = (_WIDTH_IN - _LEFT_IN - room - _GAP_IN * (columns - 1)) / columns
    grid: list[Axes] = []
    for index in range(count):
        left = _LEFT_IN + (index % 2) * (width + _GAP_IN)
        bottom = tall - (index // 2 + 1) * (height + _BELOW_IN + _ABOVE_IN) + _BELOW_IN
        box = (left / _WIDTH_IN, bottom / tall, width / _WIDTH_IN, height / tall)
        grid.append(canvas.add_axes(box, sharey=grid[0] if grid else None))
    return canvas, grid


def _panel(axes: Axes, figure: Figure, panel: Panel) -> None:
    _scale_x(axes, panel)
    _scale_y(axes, figure)
    for rank, curve in enumerate(panel.curves):
        # Whiskers of many lines at one length stand side by side, a line's points with them.
        aside = (rank - (len(panel.curves) - 1) / 2) * min(0.022, 0.25 / len(panel.curves)) if curve.low else 0.0
        _curve(axes, curve, style(curve.slot), 2**aside)
    for dot in panel.dots:
        _dot(axes, dot, style(dot.slot))
    _front(axes, panel.dots)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=INK, alpha=0.13, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel(figure.x_label)
    for _, level in panel.levels:
        axes.axhline(level, color=INK, linewidth=0.7, linestyle=(0, (4, 3)), alpha=0.6, zorder=1)
    if panel.mark:
        name, x = panel.mark
        axes.axvline(x, color=INK, linewidth=0.7, linestyle=DOTTED, alpha=0.7, zorder=1)
        axes.annotate(name, (x, 1.02), xycoords=("data", "axes fraction"), ha="center", fontsize=7.5, alpha=0.8)


def _curve(axes: Axes, curve: Curve, look: Style, aside: float) -> None:
    dashes = DOTTED if curve.doubtful else look.dashes
    x = [each * aside for each in curve.x]
    axes.plot(x, curve.y, color=look.colour, marker=look.marker, linestyle=dashes, markeredgewidth=0, clip_on=False)
    for each, low, high in zip(x, curve.low, curve.high, strict=False):
        if not math.isnan(low):
            axes.vlines(each, low, high, color=look.colour, linewidth=0.9, alpha=0.75)


def _dot(axes: Axes, dot: Dot, look: Style) -> None:
    if dot.x.known:
        axes.hlines(dot.y.mid, dot.x.low, dot.x.high, color=look.colour, linewidth=0.9, alpha=0.75)
    if dot.y.known:
        axes.vlines(dot.x.mid, dot.y.low, dot.y.high, color=look.colour, linewidth=0.9, alpha=0.75)
    face = "none" if dot.beaten else look.colour
    marker = {"marker": look.marker, "markersize": 6, "markeredgecolor": look.colour, "markerfacecolor": face}
    axes.plot([dot.x.mid], [dot.y.mid], linestyle="", clip_on=False, **marker)  # type: ignore[arg-type]


def _front(axes: Axes, dots: Sequence[Dot]) -> None:
    """Steps along the dots that are not beaten: above and to the left of them there is nothing."""
    ahead = sorted((dot for dot in dots if not dot.beaten), key=lambda one: one.x.mid)
    x, y = [one.x.mid for one in ahead], [max(one.y.mid for one in ahead[: place + 1]) for place in range(len(ahead))]
    axes.step(x, y, where="post", color=INK, linewidth=0.7, linestyle=DOTTED, alpha=0.7, zorder=1)


def _scale_x(axes: Axes, panel: Panel) -> None:
    axes.set_xscale("log", base=10 if panel.dots else 2)
    axes.xaxis.set_minor_locator(NullLocator())
    if panel.dots:
        ends = [end for dot in panel.dots for end in _ends(dot.x)]
        low, high = min(ends) / 1.06, max(ends) * 1.06
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(_ticks(low, high))
    else:
        axes.xaxis.set_major_locator(FixedLocator(sorted({x for curve in panel.curves for x in curve.x})))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))


def _scale_y(axes: Axes, figure: Figure) -> None:
    curves = [y for panel in figure.panels for curve in panel.curves for y in curve.y]
    dots = [end for panel in figure.panels for dot in panel.dots for end in _ends(dot.y)]
    if figure.share:
        axes.set_ylim(min(0, *dots) if dots else 0, 1.02)  # a score may lie below what no positions at all would reach
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.1f}"))
        return
    low, high = min((*curves, *dots), default=1) / 1.15, max((*curves, *dots), default=1) * 1.15
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(_ticks(low, high))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}"))


def _ends(interval: Interval) -> tuple[float, ...]:
    return (interval.low, interval.mid, interval.high) if interval.known else (interval.mid,)


def _ticks(low: float, high: float) -> Locator:
    """Round numbers, of which a narrow range needs others than powers of ten."""
    if high / low < 12:
        return FixedLocator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    return LogLocator(subs=(1, 2, 5) if high / low < 500 else (1,), numticks=20)

"""Names of lines at their ends, moved apart no more than they must be."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from grape_bench.palette import style
from grape_bench.table import Curve, Figure, Panel

_LONGEST = 34  # characters; the tables have the whole text
_LINE_IN, _LETTER_IN = 0.16, 0.073
_LEADER_IN, _MARKER_IN, _TEXT_IN = 0.16, 0.22, 0.3


def room_in(figure: Figure) -> float:
    """Inches that the names need at the right of a figure."""
    labels = [_short(curve.label) for panel in figure.panels for curve in panel.curves]
    return _TEXT_IN + _LETTER_IN * max(map(len, labels), default=0)


def draw_legend(axes: Axes, panel: Panel) -> None:
    """Write each line's name at its height, with its marker, and lead to it from the line's end."""
    curves = sorted((curve for curve in panel.curves if curve.x), key=lambda one: (one.y[-1], -one.slot))
    width, height = _size_in(axes)
    ends = [_height(axes, curve) for curve in curves]
    for curve, end, place in zip(curves, ends, apart(ends, _LINE_IN / height), strict=True):
        look = style(curve.slot)
        leader, marker, text = (1 + inches / width for inches in (_LEADER_IN, _MARKER_IN, _TEXT_IN))
        on = {"transform": axes.transAxes, "clip_on": False, "color": look.colour}
        axes.add_line(Line2D([1 + 0.05 / width, leader], [end, place], linewidth=0.6, alpha=0.7, **on))  # type: ignore[arg-type]
        axes.add_line(Line2D([marker], [place], marker=look.marker, linestyle="", markeredgewidth=0, **on))  # type: ignore[arg-type]
        axes.text(text, place, _short(curve.label), transform=axes.transAxes, va="center_baseline")


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Ascending places at least `gap` apart, within 0 to 1 where they fit, as near to the wanted ones as can be.

    Places less their rank's share of the gap must not fall: pools of neighbours that would are set to their mean.
    """
    pools: list[list[float]] = []
    for rank, place in enumerate(wanted):
        pools.append([place - rank * gap])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    top = max(1 - (len(wanted) - 1) * gap, 0)
    level = [min(max(_mean(pool), 0), top) for pool in pools for _ in pool]
    return [place + rank * gap for rank, place in enumerate(level)]


def _mean(pool: list[float]) -> float:
    return sum(pool) / len(pool)


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def _size_in(axes: Axes) -> tuple[float, float]:
    box = axes.get_position()
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    width, height = canvas.get_size_inches()
    return box.width * width, box.height * height


def _height(axes: Axes, curve: Curve) -> float:
    to_axes = axes.transData + axes.transAxes.inverted()
    return float(to_axes.transform((curve.x[-1], curve.y[-1]))[1])

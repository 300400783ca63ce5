"""Names of lines and dots at their heights, moved apart no more than they must be."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from grape_bench.palette import INK, style
from grape_bench.table import Figure, Panel

_LONGEST = 34  # characters; the tables have the whole text
_LINE_IN, _LETTER_IN = 0.165, 0.073
_LEADER_IN, _MARKER_IN, _TEXT_IN = 0.17, 0.24, 0.33
_GAP_IN = 0.07  # between the end of a line and what leads from it to its name


class _Name(NamedTuple):
    """The name of what is at this point of the axes, of which 0 to 1 is inside.

    Args:
        led: a thin line leads from there to the name.
    """

    end: tuple[float, float]
    text: str
    colour: str
    marker: str = ""
    led: bool = True


def room_in(figure: Figure) -> float:
    """Inches that the names need at the right of a figure."""
    names = [curve.label for panel in figure.panels for curve in panel.curves]
    names += [dot.label for panel in figure.panels for dot in panel.dots]
    names += [_level(*level) for panel in figure.panels for level in panel.levels]
    return _TEXT_IN + _LETTER_IN * max((len(_short(name)) for name in names), default=0)


def draw_legend(axes: Axes, panel: Panel) -> None:
    """Write each name at its height, with its marker, and lead to it from the end of its line."""
    names = sorted(_names(axes, panel), key=lambda one: one.end[1])
    size_in = _size_in(axes)
    for name, place in zip(names, apart([one.end[1] for one in names], _LINE_IN / size_in[1]), strict=True):
        _draw(axes, name, place, size_in[0])


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


def _draw(axes: Axes, name: _Name, place: float, width_in: float) -> None:
    """One name at a height of the axes, which are so wide."""
    leader, marker, text = (1 + inches / width_in for inches in (_LEADER_IN, _MARKER_IN, _TEXT_IN))
    x, y = name.end
    lines = []
    if name.led:
        ends = [x + _GAP_IN / width_in, leader], [y, place]
        lines.append(Line2D(*ends, linewidth=0.6, alpha=0.6, color=name.colour))
    if name.marker:
        look = {"marker": name.marker, "linestyle": "", "markeredgewidth": 0.0, "color": name.colour}
        lines.append(Line2D([marker], [place], **look))  # type: ignore[arg-type]
    for line in lines:
        line.set(transform=axes.transAxes, clip_on=False)
        axes.add_line(line)
    left, alpha = (text, 1) if name.marker else (leader + 0.03 / width_in, 0.75)
    axes.text(left, place, name.text, transform=axes.transAxes, va="center_baseline", alpha=alpha)


def _names(axes: Axes, panel: Panel) -> Iterator[_Name]:
    axes.get_xlim(), axes.get_ylim()  # the limits are settled when they are asked for, and the transforms follow
    to_axes = axes.transData + axes.transAxes.inverted()
    for curve in panel.curves:
        if curve.x:
            x, y = to_axes.transform((curve.x[-1], curve.y[-1]))
            look = style(curve.slot)
            yield _Name((float(x), float(y)), _short(curve.label), look.colour, look.marker)
    for dot in panel.dots:
        x, y = to_axes.transform((dot.x.mid, dot.y.mid))
        look = style(dot.slot)
        yield _Name((float(x), float(y)), _short(dot.label), look.colour, look.marker, led=False)
    for name, level in panel.levels:
        y = axes.transAxes.inverted().transform(axes.transData.transform((1, level)))[1]
        yield _Name((1.0, float(y)), _level(name, level), INK)


def _level(name: str, level: float) -> str:
    return f"{name} {level:.3f}".replace(" 0.", " .")


def _mean(pool: list[float]) -> float:
    return sum(pool) / len(pool)


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def _size_in(axes: Axes) -> tuple[float, float]:
    box = axes.get_position()
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    width, height = canvas.get_size_inches()
    return float(box.width * width), float(box.height * height)

"""The Pareto front as a figure: what encodings buy against what they cost."""

from grape_bench.bench import Grid
from grape_bench.groups import Ranking
from grape_bench.interval import Interval
from grape_bench.pareto import Offer, beaten
from grape_bench.ranking import SEEDS
from grape_bench.sections.offers import offers, prices
from grape_bench.table import Dot, Figure, Panel
from grape_bench.view import View


def front(view: View, title: str, ranking: Ranking, anchor: str) -> Figure | None:
    """A panel for each cost, or None where fewer than two encodings have both a score and costs.

    Args:
        title: what the scores are.
    """
    means = {one.name: one.mean for one in ranking.places}
    offered = offers(view, {name: mean.mid for name, mean in means.items()})
    if len(offered) < 2:
        return None
    powered = {one.name for one in ranking.places if not one.underpowered}
    lost = set(beaten([one for one in offered if one.name in powered], ranking.apart))
    panels = tuple(
        Panel(_title(view, grid, length), dots=tuple(_dot(view, one, index, means[one.name], lost) for one in offered))
        for index, (_, grid, length) in enumerate(prices(view))
    )
    over = f"cost over that of {view.suite.baseline}" if view.suite.baseline else "cost"
    caption = (
        f"What encodings buy against what they cost: the {title}, normalised, with intervals of both, and the front in "
        "dotted steps. A ring is beaten: another one has a score and costs that are all at least as good, and one of "
        f"them surely better. An encoding with fewer than {SEEDS} seeds is never called beaten."
    )
    return Figure(anchor, caption, over, title, panels, share=True)


def _title(view: View, grid: Grid, length: int) -> str:
    unit = "" if view.suite.baseline else f", {view.unit(grid.metric)}"
    return f"{view.name(grid.metric)}{unit}, of the {grid.scope} at {length} tokens"


def _dot(view: View, offer: Offer, index: int, mean: Interval, lost: set[str]) -> Dot:
    slot = view.encodings.index(offer.name)
    return Dot(offer.name, slot, offer.costs[index], mean, beaten=offer.name in lost)

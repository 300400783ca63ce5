"""How the lines of an encoding look, the same in all figures of a report."""

from typing import NamedTuple

Dashes = str | tuple[int, tuple[float, ...]]

INK = "#010203"  # stands for the colour of the text around a figure until the figure's place is known

# Each has a contrast of at least 3:1 on white and on #16181d. Markers differ too, for those who see fewer colours.
PALETTE = ("#2f7fd1", "#cf5a0f", "#23895b", "#b455b4", "#d0403f", "#85801f", "#1d8a9c", "#7a6ce0", "#a8693c", "#6b7a8c")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
DASHES: tuple[Dashes, ...] = ("-", (0, (5, 2)), (0, (5, 2, 1, 2)))
DOTTED: Dashes = (0, (1, 1.6))


class Style(NamedTuple):
    colour: str
    marker: str
    dashes: Dashes


def style(slot: int) -> Style:
    """The look of the encoding with this place in the suite; the first 30 all differ."""
    turn = slot // len(PALETTE)
    # Where colours come again, dashes and markers are others.
    return Style(PALETTE[slot % len(PALETTE)], MARKERS[(slot + turn) % len(MARKERS)], DASHES[turn % len(DASHES)])

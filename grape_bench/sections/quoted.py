"""The figures that the source article prints."""

import re
from typing import NamedTuple


class Quoted(NamedTuple):
    """A row of the article's table, which calls its figures simulated.

    Args:
        short, long: accuracy in tasks A and B; doubled: in task C at twice the training length.
        time: relative training time.
    """

    short: float
    long: float
    doubled: float
    time: float


ARTICLE = {
    "none": Quoted(0.743, 0.708, 0.402, 0.98),
    "sinusoidal": Quoted(0.812, 0.764, 0.489, 1.00),
    "t5": Quoted(0.823, 0.791, 0.556, 1.03),
    "rope": Quoted(0.828, 0.805, 0.638, 1.05),
    "rope + clamp": Quoted(0.833, 0.819, 0.672, 1.09),
}
REFERENCE = "sinusoidal"  # the article's 1.00 of training time


def quoted(encoding: str, encodings: tuple[str, ...]) -> Quoted | None:
    """The article's row for an encoding: that of its text, or of its names alone where no other encoding shares them.

    So `t5(max_distance=32)` stands for the article's T5 in a suite that has no further T5.
    """
    if encoding in ARTICLE:
        return ARTICLE[encoding]
    alike = [one for one in encodings if _names(one) == _names(encoding)]
    return ARTICLE.get(_names(encoding)) if alike == [encoding] else None


def _names(encoding: str) -> str:
    """The text without options; a wrapped encoding is another one and matches nothing."""
    return re.sub(r"\((?!\w+\()[a-z_]+=[^()]*\)", "", encoding)

"""Evidence: one pair of a claim, and what its interval says."""

from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Literal, get_args

from grape_bench.ranking import RATIO_MARGIN, SCORE_MARGIN, Comparison, ratio_band
from grape_bench.suite_claim import Claim

Pair = tuple[str, str]
Word = Literal["supported", "refuted", "undecided"]
WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True)
class Evidence:
    """One pair of encodings in one setting, as a claim has it.

    Args:
        what: the pair and its setting in words.
        word: what the pair alone says.
        comparison: None where there is nothing to compare.
        records: ids of the cells whose records it rests on.
        remark: what a reader has to know beside the interval, such as why there is none.
    """

    what: str
    word: Word
    comparison: Comparison | None = None
    records: tuple[str, ...] = ()
    remark: str = ""


def pairs(claim: Claim) -> tuple[Pair, ...]:
    """Who is to be above whom; for `same`, who is to be as whom; for `diminishing`, the steps up to each but the last
    beside the steps from it on, by where they end."""
    match claim.relation:
        case "order":
            return tuple((later, earlier) for earlier, later in pairwise(claim.encodings))
        case "diminishing":
            return tuple(pairwise(claim.encodings[1:]))
        case "same" if not claim.against and not claim.elsewhere:
            return tuple(combinations(claim.encodings, 2))
        case _ if not claim.against:
            return tuple((one, one) for one in claim.encodings)
        case "below":
            return tuple(product(claim.against, claim.encodings))
        case _:
            return tuple(product(claim.encodings, claim.against))


def said(claim: Claim, first: str, second: str) -> str:
    """A pair in words."""
    return f"{first} {'the same as' if claim.relation == 'same' else 'above'} {second}"


def judge(claim: Claim, comparison: Comparison) -> Word:
    """What one pair says: whether its interval is wholly where the claim has it, or wholly where it has not."""
    interval, found = comparison.interval, edges(claim, difference=comparison.difference)
    low, high = found[0], found[-1]
    if not interval.known:
        return "undecided"
    if claim.relation != "same":
        return "supported" if interval.low > high else "refuted" if interval.high <= high else "undecided"
    if low <= interval.low and interval.high <= high:
        return "supported"
    return "refuted" if interval.high < low or interval.low > high else "undecided"


def edges(claim: Claim, *, difference: bool) -> tuple[float, ...]:
    """The values at which what a claim says of one pair begins or ends: an interval with one inside decides nothing."""
    usual = 0.0 if claim.relation != "same" else SCORE_MARGIN if difference else RATIO_MARGIN
    margin = usual if claim.margin is None else claim.margin
    low, high = (-margin, margin) if difference else ratio_band(margin)
    return (low, high) if claim.relation == "same" else (high,)

"""Claims that a suite cannot decide."""

from collections.abc import Iterator

from grape_bench.lint import Fault, check
from grape_bench.lint.subject import Subject
from grape_bench.suite_claim import OF_TRAININGS


@check("GB141", "warning", "too few seeds for the claims", remedy="Give 5 seeds, such as seeds: [0, 1, 2, 3, 4].")
def few_seeds(subject: Subject) -> Iterator[Fault]:
    """A verdict on trainings rests on the differences over seeds, and fewer than five leave every claim undecided. It
    is found where a suite with fewer seeds claims something of an accuracy or a loss; claims of costs need no seeds."""
    claims = {one.id: index for index, one in enumerate(subject.suite.claims) if one.metric in OF_TRAININGS}
    if not claims:
        return
    from grape_bench.ranking import SEEDS  # loads scipy, which takes as long as all else that a check does

    count = len(subject.suite.seeds)
    if count < SEEDS:
        loc = ("claims", min(claims.values()))
        yield Fault(loc, f"{', '.join(claims)} would rest on {count} of the {SEEDS} seeds that a verdict takes")

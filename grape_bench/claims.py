"""A suite's claims against its records: supported, refuted or undecided."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from grape_bench import claim_costs, claim_trainings
from grape_bench.bench import Bench
from grape_bench.compare import figure
from grape_bench.evidence import WORDS, Evidence, Word
from grape_bench.suite_claim import OF_TRAININGS, Claim
from grape_bench.view import View


@dataclass(frozen=True)
class Verdict:
    """What the records say of a claim.

    Args:
        where: the machine that a cost was measured on; empty for an accuracy, which pools all.
    """

    claim: Claim
    evidence: tuple[Evidence, ...]
    where: str = ""

    @property
    def word(self) -> Word:
        """A claim stands if all its pairs do, and falls with one of them."""
        words = {one.word for one in self.evidence}
        if "refuted" in words:
            return "refuted"
        return "supported" if words == {"supported"} else "undecided"

    @property
    def name(self) -> str:
        return self.claim.id + (f" on {self.where}" if self.where else "")

    @property
    def records(self) -> tuple[str, ...]:
        """Ids of the cells that it rests on."""
        return tuple(dict.fromkeys(one for each in self.evidence for one in each.records))


def verdicts(view: View) -> tuple[Verdict, ...]:
    """Each claim of the suite in its order; one about cost once for each machine.

    A pair of trainings needs five seeds in common, and all intervals of a claim hold together at 95 %.
    """
    found: list[Verdict] = []
    for claim in view.suite.claims:
        if claim.metric in OF_TRAININGS:
            found.append(Verdict(claim, claim_trainings.evidence(claim, view)))
        else:
            found += [Verdict(claim, claim_costs.evidence(claim, one), _where(one)) for one in view.benches]
    return tuple(found)


def text(found: Sequence[Verdict]) -> str:
    """A table of verdicts and pairs, the sentences below it with the records they rest on, and a count."""
    rows = [row for one in found for row in _rows(one)]
    columns = ["claim", "verdict", "pair", "difference or ratio", "it says", "remarks"]
    parts = [tabulate(rows, columns, disable_numparse=True)]
    for one in found:
        source = f" ({one.claim.source})" if one.claim.source else ""
        parts.append(f"{one.name}: {one.claim.says}{source}\n  rests on: {' '.join(one.records) or 'no records'}")
    counts = Counter(one.word for one in found)
    return "\n\n".join([*parts, ", ".join(f"{counts[word]} {word}" for word in WORDS)])


def _rows(verdict: Verdict) -> Iterator[list[str]]:
    heads = [[verdict.name, verdict.word], *[["", ""]] * len(verdict.evidence)]
    for head, one in zip(heads, verdict.evidence, strict=False):
        yield [*head, one.what, figure(one.comparison) if one.comparison else "–", one.word, one.remark]


def _where(bench: Bench) -> str:
    return bench.environment.machine if bench.environment else ""

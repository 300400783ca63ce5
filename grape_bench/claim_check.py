"""What is wrong in the claims of a suite beyond their own keys: what they name must be in it."""

from collections.abc import Iterator, Sequence

from grape_bench.errors import allowed
from grape_bench.registry import Registry
from grape_bench.suite_claim import Claim
from grape_bench.suite_format import AccuracyGrid, CostGrid, SuiteFile
from grape_bench.suite_text import Loc

Fault = tuple[Loc, str]
_OF_ACCURACY, _OF_COST = ("task", "group"), ("scope", "backend", "heads", "dtype")


def faults(suite: SuiteFile) -> Iterator[Fault]:
    """Where each fault stands, and the sentence."""
    first: dict[str, int] = {}
    for index, claim in enumerate(suite.claims):
        place = ("claims", index)
        if (earlier := first.setdefault(claim.id, index)) < index:
            yield (*place, "id"), f"{claim.id!r} is the id of claims[{earlier}] already"
        found = [*_sides(claim), *_names(claim, suite), *_subject(claim, suite)]
        yield from (((*place, *loc), sentence) for loc, sentence in found)


def _sides(claim: Claim) -> Iterator[Fault]:
    """Who is compared with whom."""
    if claim.relation == "order" and claim.against:
        yield ("against",), "an order is one of 'encodings' alone; remove this key"
    elif claim.relation in ("above", "below") and not claim.against:
        yield ("relation",), f"{claim.relation} what? Give the key 'against'"
    elif not claim.against and len(claim.encodings) < 2:
        yield ("encodings",), f"{claim.relation} needs at least two encodings"
    for index, one in enumerate(claim.against):
        if one in claim.encodings:
            yield ("against", index), f"{one} is among 'encodings' already"


def _names(claim: Claim, suite: SuiteFile) -> Iterator[Fault]:
    for key, names in (("encodings", claim.encodings), ("against", claim.against)):
        for index, one in enumerate(names):
            if one not in suite.encodings:
                yield (key, index), f"{one!r} is not among the suite's encodings.{allowed(one, suite.encodings)}"


def _subject(claim: Claim, suite: SuiteFile) -> Iterator[Fault]:
    """The metric, and what tells one measurement of it from another."""
    cost = claim.metric != "accuracy"
    for key in _OF_ACCURACY if cost else _OF_COST:
        if getattr(claim, key) is not None:
            yield (key,), f"{claim.metric} has no {key}; remove this key"
    if cost and isinstance(claim.at, str):
        yield ("at",), f"{claim.metric} has no training length; give tokens, not {claim.at}"
    metrics = {metric for grid in suite.cost for metric in grid.metrics} | ({"accuracy"} if suite.accuracy else set())
    if claim.metric not in metrics:
        yield ("metric",), f"the suite does not measure {claim.metric!r}.{allowed(claim.metric, metrics)}"
    elif source := Registry("metrics")[claim.metric].facts.get("derived_from"):
        yield ("metric",), f"{claim.metric} follows from {source}; claim that"
    else:
        yield from _cost(claim, suite) if cost else _accuracy(claim, suite)


def _accuracy(claim: Claim, suite: SuiteFile) -> Iterator[Fault]:
    tasks = {grid.task for grid in suite.accuracy}
    if claim.task and claim.task not in tasks:
        yield ("task",), f"the suite does not train {claim.task}.{allowed(claim.task, tasks)}"
        return
    entries = [grid for grid in suite.accuracy if claim.task in (None, grid.task)]
    tested = [one for one in entries if claim.length(one.train_length) in one.test_lengths]
    lengths = sorted({length for one in entries for length in one.test_lengths})
    yield from _covered(claim, suite, tested, lengths)


def _cost(claim: Claim, suite: SuiteFile) -> Iterator[Fault]:
    entries = [grid for grid in suite.cost if claim.metric in grid.metrics]
    for key in _OF_COST:
        wanted = getattr(claim, key)
        known = [_axis(grid, key) for grid in entries]
        entries = [grid for grid, axis in zip(entries, known, strict=True) if wanted is None or wanted in axis]
        if not entries:
            names = sorted({str(one) for axis in known for one in axis})
            yield (key,), f"no entry of the suite measures that; it has {claim.metric} of {key} {', '.join(names)}"
            return
    measured = [grid for grid in entries if claim.at is None or claim.at in grid.lengths]
    yield from _covered(claim, suite, measured, sorted({length for one in entries for length in one.lengths}))


def _axis(grid: CostGrid, key: str) -> tuple[object, ...]:
    return {"scope": (grid.scope,), "backend": grid.backends, "heads": grid.heads, "dtype": grid.dtypes}[key]


def _covered(
    claim: Claim, suite: SuiteFile, entries: Sequence[AccuracyGrid | CostGrid], lengths: Sequence[int]
) -> Iterator[Fault]:
    """An entry must have the length, and one of these all the encodings."""
    if not entries:
        yield ("at",), f"no entry of the suite measures that; it has {', '.join(map(str, lengths))} tokens"
    named = {*claim.encodings, *claim.against} & set(suite.encodings)
    if entries and not any(named <= set(one.encodings or suite.encodings) for one in entries):
        yield ("encodings",), "no entry of the suite measures all of these side by side"

"""What is wrong in the claims of a suite beyond their own keys: what they name must be in it."""

from collections.abc import Iterable, Iterator, Sequence

from grape_bench.errors import allowed
from grape_bench.registry import Registry
from grape_bench.suite_claim import OF_TRAININGS, Claim
from grape_bench.suite_entry import AccuracyGrid, CostGrid
from grape_bench.suite_format import SuiteFile
from grape_bench.suite_text import Loc

Fault = tuple[Loc, str]
_OF_COST = ("scope", "backend", "heads", "dtype")  # what tells one cost from another
_ELSEWHERE = {"against_entry": "entry", "against_backend": "backend"}  # where the other side may stand
_OF_A_COST = (*_OF_COST, "against_backend")
_OF_LOSS = ("task", "entry", "against_entry", "step")
_OF_ACCURACY = ("task", "entry", "against_entry", "group")
_WORDS = {2: "two", 3: "three"}
_ALONE = ("order", "diminishing")  # relations of `encodings` among each other


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
    least = {"diminishing": 3, "order": 2, "same": 2}.get(claim.relation, 1)
    if claim.relation in _ALONE and (claim.against or claim.elsewhere):
        key = next(one for one in ("against", *_ELSEWHERE) if getattr(claim, one))
        yield (key,), f"{claim.relation} is a relation of 'encodings' alone; remove this key"
    elif claim.relation not in _ALONE and (claim.against or claim.elsewhere):
        least = 1
    elif claim.relation in ("above", "below"):
        yield ("relation",), f"{claim.relation} what? Give the key 'against'"
    if len(claim.encodings) < least:
        yield ("encodings",), f"{claim.relation} needs at least {_WORDS[least]} encodings"
    for index, one in enumerate(claim.against):
        if one in claim.encodings and claim.elsewhere is None:
            yield ("against", index), f"{one} is among 'encodings' already"
    for key, own in _ELSEWHERE.items():
        if getattr(claim, key) is not None and getattr(claim, key) == getattr(claim, own):
            yield (key,), f"that is the {own} of 'encodings'; remove this key"
    if claim.relation == "same" and claim.margin is not None and claim.margin < 0:
        yield ("margin",), f"nothing is the same by less than 0; give at least 0, not {claim.margin:g}"


def _names(claim: Claim, suite: SuiteFile) -> Iterator[Fault]:
    for key, names in (("encodings", claim.encodings), ("against", claim.against)):
        for index, one in enumerate(names):
            if one not in suite.encodings:
                yield (key, index), f"{one!r} is not among the suite's encodings.{allowed(one, suite.encodings)}"


def _subject(claim: Claim, suite: SuiteFile) -> Iterator[Fault]:
    """The metric, and what tells one measurement of it from another."""
    trained = claim.metric in OF_TRAININGS
    fitting = {"accuracy": _OF_ACCURACY, "loss": _OF_LOSS}.get(claim.metric, _OF_A_COST)
    for key in dict.fromkeys((*_OF_ACCURACY, *_OF_LOSS, *_OF_A_COST)):
        if key not in fitting and getattr(claim, key) is not None:
            yield (key,), f"{claim.metric} has no {key}; remove this key"
    if not trained and isinstance(claim.at, str):
        yield ("at",), f"{claim.metric} has no training length; give tokens, not {claim.at}"
    if claim.metric == "loss" and claim.at is not None:
        yield ("at",), "a loss is of the training, at its own lengths; remove this key"
    metrics = {metric for grid in suite.cost for metric in grid.metrics} | {*(OF_TRAININGS if suite.accuracy else ())}
    if claim.metric not in metrics:
        yield ("metric",), f"the suite does not measure {claim.metric!r}.{allowed(claim.metric, metrics)}"
    elif trained:
        yield from _trained(claim, suite)
    elif claim.relation == "diminishing":
        yield ("relation",), f"{claim.metric} is compared by ratios, which have no gains; claim an order"
    elif source := Registry("metrics")[claim.metric].facts.get("derived_from"):
        yield ("metric",), f"{claim.metric} follows from {source}; claim that"
    else:
        yield from _cost(claim, suite)


def _trained(claim: Claim, suite: SuiteFile) -> Iterator[Fault]:
    if unknown := list(_unknown(claim, suite)):
        yield from unknown
        return
    entries = [grid for grid in suite.accuracy if claim.task in (None, grid.task)]
    own = [grid for grid in entries if claim.entry in (None, grid.name)]
    others = [grid for grid in entries if grid.name == claim.against_entry] if claim.against_entry else own
    if claim.metric == "loss":
        tested = own
        yield from _stepped(claim, (*own, *others))
    else:
        tested = [one for one in own if claim.length(one.train_length) in one.test_lengths]
        yield from _questions(claim, own)
        if not tested:
            yield _untested(length for one in own for length in one.test_lengths)
    if claim.against_entry:
        yield from _beside(claim, tested, others)
    yield from _side_by_side(claim, suite, tested)


def _unknown(claim: Claim, suite: SuiteFile) -> Iterator[Fault]:
    tasks, names = {grid.task for grid in suite.accuracy}, {grid.name for grid in suite.accuracy if grid.name}
    if claim.task and claim.task not in tasks:
        yield ("task",), f"the suite does not train {claim.task}.{allowed(claim.task, tasks)}"
    for key in ("entry", "against_entry"):
        if (name := getattr(claim, key)) is not None and name not in names:
            yield (key,), f"no entry of the suite is named {name!r}.{allowed(name, names)}"


def _untested(lengths: Iterable[int]) -> Fault:
    return ("at",), f"no entry of the suite measures that; it has {', '.join(map(str, sorted({*lengths})))} tokens"


def _questions(claim: Claim, entries: Sequence[AccuracyGrid]) -> Iterator[Fault]:
    """The group of an accuracy, where the tasks say what they ask."""
    asked = [Registry("tasks")[one.task.partition("(")[0]].facts.get("asks", ()) for one in entries]
    names = {name for each in asked for name in each}
    if claim.group is not None and all(asked) and claim.group not in names:
        yield ("group",), f"no task of these asks for {claim.group!r}.{allowed(claim.group, names)}"


def _stepped(claim: Claim, entries: Sequence[AccuracyGrid]) -> Iterator[Fault]:
    most = min((grid.training.steps for grid in entries), default=0)
    if claim.step is not None and claim.step > most:
        yield ("step",), f"a training of these ends at step {most}"


def _beside(claim: Claim, own: Sequence[AccuracyGrid], others: Sequence[AccuracyGrid]) -> Iterator[Fault]:
    """The other entry must have what is compared at the same length."""
    for one in (other for other in others if own and claim.metric == "accuracy"):
        wanted = claim.length(own[0].train_length)
        if wanted not in one.test_lengths:
            yield ("against_entry",), f"{one.name} is not tested at {wanted:g} tokens"
    for index, name in enumerate(claim.against or claim.encodings):
        if not any(name in one.encodings or not one.encodings for one in others):
            yield ("against" if claim.against else "encodings", index), f"{claim.against_entry} does not train {name}"


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
    if not measured:
        yield _untested(length for one in entries for length in one.lengths)
    if claim.against_backend:
        yield from _by_another_backend(claim, suite)
    yield from _side_by_side(claim, suite, measured)


def _by_another_backend(claim: Claim, suite: SuiteFile) -> Iterator[Fault]:
    """The other backend must have what is compared."""
    if claim.backend is None:
        yield ("against_backend",), "against which one? Give the key 'backend' too"
    others = {
        name
        for grid in suite.cost
        if claim.metric in grid.metrics and claim.against_backend in grid.backends
        if claim.at is None or claim.at in grid.lengths
        for name in grid.encodings or suite.encodings
    }
    for index, name in enumerate(claim.against or claim.encodings):
        if name not in others:
            key = "against" if claim.against else "encodings"
            yield (key, index), f"{name} is not measured so by {claim.against_backend}"


def _axis(grid: CostGrid, key: str) -> tuple[object, ...]:
    return {"scope": (grid.scope,), "backend": grid.backends, "heads": grid.heads, "dtype": grid.dtypes}[key]


def _side_by_side(claim: Claim, suite: SuiteFile, entries: Sequence[AccuracyGrid | CostGrid]) -> Iterator[Fault]:
    """One entry must have all that stand in it."""
    named = {*claim.encodings, *(() if claim.elsewhere else claim.against)} & set(suite.encodings)
    if entries and not any(named <= set(one.encodings or suite.encodings) for one in entries):
        yield ("encodings",), "no entry of the suite measures all of these side by side"

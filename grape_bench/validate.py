"""Is a bundle what it says? It comes from a stranger, so nothing in it is believed, and nothing of it is run."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from grape_bench.bundle import REPORT, differences, report
from grape_bench.cell import AccuracyCell
from grape_bench.errors import UserError
from grape_bench.printable import on_one_line
from grape_bench.record import SCHEMA, AccuracyReading, MemoryReading, Record, TimeReading
from grape_bench.registry import Registry
from grape_bench.suite import expand
from grape_bench.unpack import Unpacked, unpack

_MOST_REASONS = 20  # of one kind of fault


def validate(path: Path) -> list[str]:
    """Why a bundle is refused, in a sentence each that is safe to print; empty where it is accepted."""
    return [on_one_line(sentence) for sentence in _reasons(path)]


def _reasons(path: Path) -> list[str]:
    try:
        bundle = unpack(path)
    except UserError as error:
        return str(error).splitlines()
    faults = [sentence for check in CHECKS for sentence in _some(check(bundle))]
    return faults or _some(_numbers(bundle))  # what is out of range has no report


def _some(sentences: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(sentences))
    left = len(found) - _MOST_REASONS
    return found if left <= 0 else [*found[:_MOST_REASONS], f"and {left} more like the last one"]


def _division(bundle: Unpacked) -> Iterator[str]:
    changes, stated = differences(bundle.suite), bundle.manifest.changes
    if bundle.manifest.division == "closed" and changes:
        yield f"it claims the closed division, and {'; '.join(changes)}"
    elif bundle.manifest.division == "open" and changes != stated:
        yield f"it states other changes to its suite than there are: {'; '.join(changes) or 'none'}"


def _cells(bundle: Unpacked) -> Iterator[str]:
    asked = {cell.id for cell in expand(bundle.suite)}
    for one in bundle.all():
        if one.id != one.cell.id:
            yield f"record {one.id}: its id is not that of its cell, {one.cell.id}"
        elif one.id not in asked:
            versions = " ".join(one.cell.versions)
            yield f"record {one.id}: {one.cell.encoding} with versions {versions} is no cell of the suite"
        if one.suite != bundle.suite.name:
            yield f"record {one.id}: it is of the suite {one.suite}"
        if one.schema_ > SCHEMA:
            yield f"record {one.id}: schema {one.schema_} is newer than {SCHEMA}"


def _machines(bundle: Unpacked) -> Iterator[str]:
    for machine, records in bundle.records.items():
        for one in records:
            if one.environment.machine != machine:
                yield f"record {one.id}: it is of the machine {one.environment.machine}, in the file of {machine}"


def _duplicates(bundle: Unpacked) -> Iterator[str]:
    seen = Counter((one.block_run, one.id, one.role) for one in bundle.all() if one.status == "ok")
    for (run, cell, role), count in seen.items():
        if count > 1:
            yield f"cell {cell}: {count} readings as {role} in the one block run {run}"


def _seeds(bundle: Unpacked) -> Iterator[str]:
    """Equal seeds saw equal data, different seeds different data, and a training is there once."""
    seeds: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    data: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    curves: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for one in bundle.all():
        if isinstance(one.cell, AccuracyCell) and isinstance(one.reading, AccuracyReading):
            seeds[one.cell.setting, one.reading.data_sha].add(one.cell.seed)
            data[one.cell.setting, one.cell.seed].add(one.reading.data_sha)
            curves[one.cell.setting, one.cell.encoding, str(one.reading.curve)].add(one.id)
    for (_, sha), several in seeds.items():
        if len(several) > 1:
            yield f"seeds {sorted(several)} saw the same data, {sha}"
    for (_, seed), shas in data.items():
        if len(shas) > 1:
            yield f"seed {seed} saw different data for different encodings"
    for ids in curves.values():
        if len(ids) > 1:
            yield f"cells {' and '.join(sorted(ids))} have one and the same training"


def _kinds(bundle: Unpacked) -> Iterator[str]:
    """A reading is of the kind that its cell's metric gives."""
    metrics = Registry("metrics")
    for one in bundle.all():
        kind = metrics[one.cell.metric].facts["kind"] if one.cell.metric in metrics else None
        if one.reading and one.reading.kind != ("time" if kind == "compile" else kind):
            yield f"record {one.id}: a cell of {one.cell.metric} with a reading of {one.reading.kind}"


def _ranges(bundle: Unpacked) -> Iterator[str]:
    for one in bundle.all():
        if (one.status == "ok") != (one.reading is not None):
            yield f"record {one.id}: a status of {one.status} {'without' if one.reading is None else 'with'} a reading"
        if (sentence := _range(one)) is not None:
            yield f"record {one.id}: {sentence}"


def _range(record: Record) -> str | None:
    match record.reading:
        case TimeReading() as time:
            if not time.samples_ms or min(*time.samples_ms, *time.wall_ms, time.inner) <= 0:
                return "a time is above 0, and there is at least one"
            return None if len(time.samples_ms) == len(time.wall_ms) else "each sample has its wall time"
        case MemoryReading() as memory:
            return None if memory.peak_mib >= 0 else "a peak of memory is not below 0"
        case AccuracyReading() as accuracy:
            scores = (*accuracy.scores, *accuracy.windowed, *accuracy.truncated)
            if any((one.nats or 0) < 0 or (one.blind_nats or 1) <= 0 for one in scores):
                return "a loss is not below 0"
            right = all(0 <= one.correct <= one.total and one.total > 0 for one in scores)
            rates = all(0 <= rate <= 1 for one in scores for rate in (one.blind, one.chance))
            if not (right and rates and accuracy.scores):
                return "right answers lie between 0 and the questions asked"
    return None


def _clean(bundle: Unpacked) -> Iterator[str]:
    if bundle.manifest.division == "closed":
        for one in bundle.all():
            commit = one.environment.commit
            if one.environment.dirty or not commit:
                what = f"the commit {commit[:10]} with changes" if commit else "no commit"
                yield f"the closed division takes clean commits, and there are records of {what}"


def _numbers(bundle: Unpacked) -> Iterator[str]:
    """Every number that is shown comes out of the raw samples again."""
    try:
        own = report(bundle.suite, bundle.all())
    except (ArithmeticError, ValueError) as error:  # each number is in its range, and what is computed of them is not
        yield f"no report follows from the records: {error}"
        return
    again, given = (text.decode(errors="replace").split("\n") for text in (own, bundle.report))
    for number, (expected, found) in enumerate(zip(again, given, strict=False), 1):
        if expected != found:
            yield f"{REPORT}:{number} does not follow from the records"
            return
    if len(again) != len(given):
        yield f"{REPORT} has {len(given)} lines, and {len(again)} follow from the records"


CHECKS: tuple[Callable[[Unpacked], Iterator[str]], ...] = (
    _division, _cells, _machines, _duplicates, _seeds, _kinds, _ranges, _clean,
)  # fmt: skip

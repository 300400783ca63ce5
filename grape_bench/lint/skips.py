"""Cells that can only become skips."""

from collections.abc import Iterator

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.lint import Fault, check
from grape_bench.lint.subject import AnyEntry, Subject
from grape_bench.suite_entry import CostGrid
from grape_bench.suite_filter import unexpected

_MEANT = "where the skips are meant, list them under `skips` with the reason"


@check(
    "GB131",
    "warning",
    "causal encodings in a bidirectional model",
    remedy=f"Write causal: true, or give the entry a list of encodings without it; {_MEANT}.",
)
def causal_only(subject: Subject) -> Iterator[Fault]:
    """An encoding that lives in decoders alone is skipped in a bidirectional model. It is found where an encoding
    declares the domain `causal` and an entry is not causal, unless the suite expects all of these skips."""
    for entry in subject.entries:
        causal = entry.grid.causal if isinstance(entry.grid, CostGrid) else entry.grid.model.causal
        for loc, seen in () if causal else entry.members:
            if seen.causal and unexpected(_cells(subject, entry, seen.text), subject.suite.skips):
                name = f"{entry.loc[0]}[{entry.loc[1]}]"
                yield Fault(loc, f"{seen.text} lives in decoders alone, and the model of {name} is bidirectional")


@check(
    "GB132",
    "warning",
    "encodings that cannot decode, in a suite that decodes",
    remedy=f"Give the entry that decodes a list of encodings without it; {_MEANT}.",
)
def cannot_decode(subject: Subject) -> Iterator[Fault]:
    """Where all angles change with each new token, turned keys cannot be cached, and decoding is skipped. It is found
    where an encoding, or what it wraps, declares why it cannot stream, and an entry has a metric that decodes, unless
    the suite expects all of these skips."""
    metrics = subject.plugins["metrics"]
    for entry in subject.costs:
        decoding = [one for one in entry.grid.metrics if metrics[one].facts["decodes"]]
        for loc, seen in (one for one in entry.members if decoding and one.portrait.not_streaming):
            cells = [one for one in _cells(subject, entry, seen.text) if one.metric in decoding]
            if unexpected(cells, subject.suite.skips):
                yield Fault(loc, f"{seen.text} has no {' and no '.join(decoding)}: {seen.not_streaming}")


def _cells(subject: Subject, entry: AnyEntry, encoding: str) -> list[CostCell | AccuracyCell]:
    return [one for one in subject.cells(entry) if one.encoding == encoding]

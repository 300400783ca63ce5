"""The map of encodings: what each is in the language of groups, and which laws it was measured to obey."""

from collections.abc import Iterable

from tabulate import tabulate

from grape_bench.errors import UserError
from grape_bench.expression import Expression
from grape_bench.registry import Plugin, Registry
from grape_bench.table import Entry, Prose, Report, Row, Section, Table
from grape_bench.verification import Verification

# The article's own map: its six rows come first. Its GRAPE is a rotation with a learned table.
ARTICLE = ("sinusoidal", "learned", "t5", "alibi", "rope", "rope + clamp")

MEANING = {
    "relative": "scores see differences of positions alone",
    "identity": "G(0) = 1",
    "inverse": "G(-n) G(n) = 1",
    "homomorphism": "G(a) G(b) = G(a + b)",
    "isometric": "turning keeps norms",
    "unipotent": "the bias grows in proportion to the distance",
    "path": "b(i, j) = b(i, l) + b(l, j)",
    "reflection": "an encoder does not see which way positions run",
    "causality": "later tokens change nothing earlier",
    "prefix": "a row does not depend on how many tokens follow",
    "streaming": "decoding from a cache equals the full pass",
    "heads": "heads do not mix",
    "batch": "sequences do not mix",
    "dtype": "half precision tells positions up to 131072 apart",
    "lift": "the lift equals the tile up to a constant in each row",
}
_MAP = (
    "encoding", "group", "representation or kernel", "direction", "turns q, k", "bias", "rank", "parameters",
    "state per key and head", "streams",
)  # fmt: skip


def report(records: Iterable[Verification]) -> Report:
    """The page, from the latest finding of each encoding that is still of its present version."""
    found = latest(records)
    sections = (
        Section("map", "The map", (Prose(_reading(found)), map_table(found))),
        Section("laws", "The laws, measured", (Prose(_LAWS), _laws(found), _meanings())),
        Section("sources", "Sources", (_sources(found),)),
    )
    about = "Encodings as groups, representations and laws, as declared by each and as measured by grape-bench verify."
    return Report("encodings", "The map of position encodings", about, sections)


_LAWS = (
    "Each law was declared by the encoding to hold or to fail, and measured in float64 on random content: ✓ it "
    "holds, ✗ it fails as declared, ! it is not as declared, – it does not apply. Beside the mark stands the largest"
    " violation found: of an entry of a matrix for laws of rotations, relative to the largest value for others, and "
    "for dtype the share of positions that half precision confuses."
)


def text(records: Iterable[Verification]) -> str:
    """The map for a terminal, from records; nothing is run."""
    table = map_table(latest(records))
    body = [[entry.text for entry in row] for row in table.rows]
    if not body:
        return "Nothing was verified yet: `grape-bench verify` measures what these obey, and makes a map of it."
    return tabulate(body, table.columns, maxcolwidths=[None, None, 28, *[None] * 6, 30], disable_numparse=True)


def latest(records: Iterable[Verification]) -> dict[str, Verification]:
    """The last record of each encoding, the article's six first, then in the order of the registry."""
    registry = Registry("encodings")
    kept = {one.encoding: one for one in records if _current(one, registry)}
    names = list(registry)
    order = sorted(kept, key=lambda text: (names.index(Expression.parse(text, registry).parts[0].name), "+" in text))
    return {text: kept[text] for text in dict.fromkeys((*(one for one in ARTICLE if one in kept), *order))}


def map_table(found: dict[str, Verification]) -> Table:
    """Facts that the source declares, and what was measured."""
    registry = Registry("encodings")
    rows = tuple(_row(one, registry) for one in found.values())
    return Table("map-table", "What each encoding is", _MAP, rows, prose=True)


def _current(one: Verification, registry: Registry) -> bool:
    try:
        return Expression.parse(one.encoding, registry).versions() == one.versions
    except UserError:  # an encoding or an option of another time
        return False


def _row(one: Verification, registry: Registry) -> Row:
    expression = Expression.parse(one.encoding, registry)
    parts, whole = ([registry[part.name] for part in some] for some in (expression.parts, expression.walk()))
    declared = [one.encoding, _each(parts, "group"), _each(parts, "representation"), _direction(whole)]
    measured = _measured(one) if one.findings else ("–",) * 6
    return tuple(map(Entry, (*declared, *measured)))


def _each(parts: list[Plugin], fact: str) -> str:
    return " and ".join(dict.fromkeys(str(part.facts.get(fact, "–")) for part in parts))  # – where it is computed


def _direction(whole: list[Plugin]) -> str:
    return "causal" if any(part.facts.get("domain") == "causal" for part in whole) else "both"


def _measured(reading: Verification) -> tuple[str, ...]:
    lifts = f", lifts by {reading.channels}" if reading.channels else ""
    return (
        "yes" if reading.turns else "no",
        (" + ".join(reading.bias) or "none") + lifts,
        "–" if reading.rank is None else f"{reading.rank} of {reading.tokens - 1}",
        f"{reading.parameters:,}",
        str(reading.features) if reading.features else "none",
        reading.not_streaming or "yes",
    )


def _reading(found: dict[str, Verification]) -> str:
    if not found:
        return "Nothing was verified yet: run grape-bench verify."
    return (
        "The first six rows are the article's table. The rank is that of the bias in a decoder, less a constant in "
        "each row, which softmax does not see; – where content or infinities leave no matrix. Parameters are those "
        "of one layer with width 512, 8 heads and 2048 training tokens. State is what a cache keeps beside each key,"
        " in numbers; memory without a lift is a bias of heads × tokens × tokens unless a backend makes it piece by "
        "piece."
    )


def _laws(found: dict[str, Verification]) -> Table:
    names = list(dict.fromkeys(finding.law for one in found.values() for finding in one.findings))
    return Table("laws-table", "Residuals of the laws", ("encoding", *names), tuple(map(_residuals, found.values())))


def _residuals(one: Verification) -> Row:
    if not one.findings:
        return (Entry(one.encoding, one.message),)
    return (
        Entry(one.encoding),
        *(Entry(str(each), tone="plain" if each.agrees else "failed") for each in one.findings),
    )


def _sources(found: dict[str, Verification]) -> Table:
    registry = Registry("encodings")
    names = dict.fromkeys(part.name for text in found for part in Expression.parse(text, registry).walk())
    entries = tuple((Entry(name), Entry(registry[name].source.replace("`", ""))) for name in names)
    return Table("source-table", "Where each encoding comes from", ("encoding", "source"), entries, prose=True)


def _meanings() -> Table:
    entries = tuple((Entry(law), Entry(text)) for law, text in MEANING.items())
    return Table("meaning-table", "What the laws say", ("law", "meaning"), entries, prose=True)

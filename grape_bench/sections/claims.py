"""What the suite claims, and what its records say of it."""

from collections import Counter
from collections.abc import Iterable

from grape_bench.claims import Verdict, verdicts
from grape_bench.compare import figure
from grape_bench.evidence import WORDS, Evidence, Word
from grape_bench.ranking import SEEDS
from grape_bench.table import Entry, Prose, Row, Section, Table, Tone
from grape_bench.view import View

_TONES: dict[Word, Tone] = {"supported": "ok", "refuted": "failed", "undecided": "unclear"}
_READING = (
    "A claim is supported where the intervals of all its pairs lie wholly where it says, refuted where one of them "
    "lies wholly elsewhere, and undecided otherwise. The intervals of one claim hold together at 95 %. Accuracies "
    f"and losses are differences over the seeds that both sides share, at least {SEEDS}; costs are ratios."
)


def claims(view: View) -> Section | None:
    """The verdicts, and the pairs that each rests on."""
    found = verdicts(view)
    if not found:
        return None
    counts = Counter(one.word for one in found)
    caption = f"Verdicts: {', '.join(f'{counts[word]} {word}' for word in WORDS)}"
    columns = ("claim", "verdict", "in words", "source")
    summary = Table("claims-table", caption, columns, tuple(map(_verdict, found)), prose=True)
    return Section("claims", "Claims", (Prose(_READING), summary, _pairs(found)))


def _pairs(found: Iterable[Verdict]) -> Table:
    columns = ("pair", "it says", "difference or ratio", "remarks", "rests on")
    rows = tuple(row for one in found for row in ((Entry(one.name),), *map(_evidence, one.evidence)))
    return Table("claims-evidence", "What each verdict rests on, by the ids of its cells", columns, rows, prose=True)


def _verdict(verdict: Verdict) -> Row:
    claim = verdict.claim
    return Entry(verdict.name), _word(verdict.word), Entry(claim.says), Entry(claim.source)


def _evidence(one: Evidence) -> Row:
    effect = figure(one.comparison) if one.comparison else "–"
    return Entry(one.what), _word(one.word), Entry(effect), Entry(one.remark), Entry(" ".join(one.records))


def _word(word: Word) -> Entry:
    return Entry(word, tone=_TONES[word])

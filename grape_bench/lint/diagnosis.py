"""From a suite's file to its findings."""

from collections.abc import Sequence
from pathlib import Path

from grape_bench.finding import Finding, Place
from grape_bench.lint.catalogue import checks
from grape_bench.lint.ignore import ignores, sift
from grape_bench.lint.subject import Machine, Subject
from grape_bench.record import Record
from grape_bench.suite import Suite
from grape_bench.suite_text import Loc, file_of, read_text
from grape_bench.suite_yaml import parse_text


def diagnose(path: Path, suite: Suite, machine: Machine, records: Sequence[Record] = ()) -> list[Finding]:
    """What is unwise in a suite that is formally right, in the order of its file.

    Args:
        path: of its file, as messages name it.
        records: the suite's own, from which the time of its entries is known.
    """
    text, file, subject = read_text(path), str(file_of(path)), Subject(suite, machine, records)
    places = parse_text(text, file)
    found: dict[tuple[str, Loc], Finding] = {}  # one for each code and place, though several entries may have it
    for one in checks():
        for loc, reason in one.find(subject):
            found.setdefault((one.rule.code, loc), one.rule.found(Place(file, places.place(loc).line), f"{reason}."))
    sized = "@" in suite.name  # a comment may be for another size
    lasting = frozenset(one.rule.code for one in checks() if one.of_machine or sized)
    left = sift(list(found.values()), ignores(text), file, lasting)
    return sorted(left, key=lambda one: (one.place.line or 0, one.code))

"""Comments that ignore findings: `# grape-bench: ignore[GB103] reason`, on the line of a finding or above it."""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from grape_bench.finding import Finding, Place, Rule

_Mark = tuple[int, int]  # line and column, from 0
_COMMENT = re.compile(r"(?:^|\s)#\s*grape-bench:\s*ignore\s*\[(?P<codes>[^\]]*)\]\s*(?P<reason>.*)$")

REASONLESS = Rule(
    "GB191",
    "warning",
    "an ignore comment without a reason",
    "Say behind the bracket why the finding may stay.",
    "Who reads a suite later must see why a finding was let stand. The comment still hides the finding that it names.",
)
IDLE = Rule(
    "GB192",
    "warning",
    "an ignore comment that ignores nothing",
    "Remove the code, or correct it.",
    "A comment that outlives its finding would hide the next one. It is found where no finding of a code stands in the "
    "line of the comment or, for a comment on a line of its own, in the next line with content. Codes that depend on "
    "the machine are left alone, since they may be found elsewhere.",
)
RULES = (REASONLESS, IDLE)


@dataclass(frozen=True)
class Ignore:
    """One comment.

    Args:
        line: where it stands; target: the line whose findings it hides.
    """

    line: int
    target: int
    codes: tuple[str, ...]
    reason: str

    def hides(self, finding: Finding) -> bool:
        return finding.place.line == self.target and finding.code in self.codes


def ignores(text: str) -> tuple[Ignore, ...]:
    """The comments of a YAML text."""
    lines = text.splitlines()
    found = [(number, match) for number, line in enumerate(lines, 1) if (match := _COMMENT.search(line))]
    if not found:
        return ()
    targets, values = _targets(lines), _values(text)
    return tuple(
        Ignore(number, targets[number], tuple(map(str.strip, match["codes"].split(","))), match["reason"].strip())
        for number, match in found
        if not _within(values, (number - 1, match.start()))
    )


def sift(
    findings: Sequence[Finding], comments: Sequence[Ignore], source: str, lasting: frozenset[str]
) -> list[Finding]:
    """What no comment hides, and what is wrong with the comments.

    Args:
        source: the file's name.
        lasting: codes that may be found on another machine only.
    """
    left = [one for one in findings if not any(comment.hides(one) for comment in comments)]
    return left + [fault for one in comments for fault in _faults(one, findings, source, lasting)]


def _faults(comment: Ignore, findings: Sequence[Finding], source: str, lasting: frozenset[str]) -> Iterator[Finding]:
    place = Place(source, comment.line)
    if not comment.reason:
        yield REASONLESS.found(place, f"nothing says why {' and '.join(comment.codes)} may stay.")
    found = {one.code for one in findings if comment.hides(one)}
    for code in comment.codes:
        if code not in found | lasting:
            yield IDLE.found(place, f"there is no finding {code!r} in line {comment.target}.")


def _targets(lines: Sequence[str]) -> dict[int, int]:
    """For each line itself, or where it is a comment alone the next one that is more than that."""
    targets, target = {}, len(lines)
    for number in range(len(lines), 0, -1):
        target = target if re.match(r"\s*(#|$)", lines[number - 1]) else number
        targets[number] = target
    return targets


def _values(text: str) -> list[tuple[_Mark, _Mark]]:
    """Where the values of a YAML text begin and end, in order: a # inside of one begins no comment."""
    scalars = (one for one in yaml.scan(text) if isinstance(one, yaml.ScalarToken))
    return [((a.line, a.column), (b.line, b.column)) for a, b in ((one.start_mark, one.end_mark) for one in scalars)]


def _within(values: Sequence[tuple[_Mark, _Mark]], at: _Mark) -> bool:
    before = bisect(values, at, key=lambda one: one[0])
    return before > 0 and at < values[before - 1][1]

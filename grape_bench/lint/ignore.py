"""Comments that ignore findings: `# grape-bench: ignore[GB103] reason`, on the line of a finding or above it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from grape_bench.finding import Finding, Place, Rule

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
    return tuple(
        Ignore(number, _target(lines, number), codes, found["reason"].strip())
        for number, line in enumerate(lines, 1)
        if (found := _COMMENT.search(line)) and not _quoted(text, number, found.start())
        if (codes := tuple(code.strip() for code in found["codes"].split(",")))
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


def _target(lines: Sequence[str], number: int) -> int:
    """Its own line, or for a line of comment alone the next one that is more than that."""
    while number < len(lines) and re.match(r"\s*(#|$)", lines[number - 1]):
        number += 1
    return number


def _quoted(text: str, line: int, column: int) -> bool:
    """Whether a place is inside of a value, where a # begins no comment."""
    at = (line - 1, column)
    scalars = (one for one in yaml.scan(text) if isinstance(one, yaml.ScalarToken))
    return any(
        (one.start_mark.line, one.start_mark.column) <= at < (one.end_mark.line, one.end_mark.column) for one in scalars
    )

"""What `check` finds: the data of a finding, and its text, JSON and GitHub forms."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from grape_bench.errors import UserError, allowed

Severity = Literal["error", "warning", "note"]
_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}  # what GitHub calls them


class Place(NamedTuple):
    """Where a finding is: the line of a file, or the dotted name of a module, which has no line."""

    name: str
    line: int | None = None

    def __str__(self) -> str:
        return self.name if self.line is None else f"{self.name}:{self.line}"


@dataclass(frozen=True)
class Finding:
    """One fault that was found.

    Args:
        code: stable, such as GB101.
        reason: one sentence, with what was measured or computed.
        remedy: one sentence that says what to do.
    """

    code: str
    severity: Severity
    place: Place
    reason: str
    remedy: str


@dataclass(frozen=True)
class Rule:
    """What one code stands for.

    Args:
        title: the fault in a few words.
        remedy: the same for every finding of this code.
        why: a paragraph for `--explain`: what the fault is, what it does, and how it is recognised.
    """

    code: str
    severity: Severity
    title: str
    remedy: str
    why: str

    def found(self, place: Place, reason: str) -> Finding:
        """A finding of this rule."""
        return Finding(self.code, self.severity, place, reason, self.remedy)


@dataclass(frozen=True)
class Remark:
    """What is no fault and must be said all the same.

    Args:
        kind: a fact that was measured, or a check that could not be made.
        text: one sentence; of a check that was not made, the reason.
    """

    code: str
    kind: Literal["fact", "not checked"]
    text: str


def explain(code: str, rules: Iterable[Rule]) -> str:
    """A code's rule in full.

    Raises:
        UserError: no rule has this code.
    """
    known = {rule.code: rule for rule in rules}
    if code not in known:
        raise UserError(f"{code!r} is no code of check.{allowed(code, known)}")
    rule = known[code]
    return f"{rule.code} ({rule.severity}): {rule.title}\n\n{rule.why}\n\nremedy: {rule.remedy}"


def text(findings: Sequence[Finding], remarks: Sequence[Remark] = ()) -> str:
    """For a terminal: a finding is two lines, a remark one; empty where there is nothing to say."""
    lines = [f"{one.place}: {one.severity} {one.code} {one.reason}\n    remedy: {one.remedy}" for one in findings]
    return "\n".join(lines + [f"{one.kind}: {one.code} {one.text}" for one in remarks])


def as_json(findings: Sequence[Finding], remarks: Sequence[Remark] = ()) -> str:
    """For a program: two lists of objects, which may be empty."""
    found = [{**vars(one), "place": one.place.name, "line": one.place.line} for one in findings]
    return json.dumps({"findings": found, "remarks": [vars(one) for one in remarks]}, indent=2, ensure_ascii=False)


def github(findings: Sequence[Finding], remarks: Sequence[Remark] = ()) -> str:
    """For GitHub Actions: one annotation a line, at its file where a finding has a line."""
    lines = [_annotation(_LEVELS[one.severity], one.code, one.place, f"{one.reason} {one.remedy}") for one in findings]
    return "\n".join(lines + [_annotation("notice", one.code, None, f"{one.kind}: {one.text}") for one in remarks])


def _annotation(level: str, code: str, place: Place | None, message: str) -> str:
    if place is None or place.line is None:
        where, message = "", message if place is None else f"{place}: {message}"
    else:
        where = f"file={_property(place.name)},line={place.line},"
    return f"::{level} {where}title={_property(code)}::{_data(message)}"


def _data(word: str) -> str:
    return word.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(word: str) -> str:
    return _data(word).replace(":", "%3A").replace(",", "%2C")


FORMATS: dict[str, Callable[[Sequence[Finding], Sequence[Remark]], str]] = {
    "text": text,
    "json": as_json,
    "github": github,
}

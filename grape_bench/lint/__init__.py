"""The contract of a check: a function that finds one fault of suites, with its code, its severity and its remedy.

A file of this folder is a family of checks. The first paragraph and more of a check's docstring is what `--explain`
prints: what the fault does, and how it is recognised. No check runs a plug-in or loads torch.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from grape_bench.finding import Rule, Severity
from grape_bench.lint.subject import Subject
from grape_bench.suite_text import Loc


class Fault(NamedTuple):
    """Where in a suite, and one sentence with its numbers, without the full stop."""

    loc: Loc
    reason: str


Find = Callable[[Subject], Iterator[Fault]]


@dataclass(frozen=True)
class Check:
    """A rule, and the function that finds where a suite breaks it.

    Args:
        of_machine: what it finds depends on the machine that checks, so that elsewhere there may be nothing to ignore.
    """

    rule: Rule
    find: Find
    of_machine: bool = False


def check(
    code: str, severity: Severity, title: str, *, remedy: str, of_machine: bool = False
) -> Callable[[Find], Check]:
    """Make a function a check; its docstring says why."""

    def made(find: Find) -> Check:
        why = " ".join((inspect.getdoc(find) or "").split())
        return Check(Rule(code, severity, title, remedy, why), find, of_machine)

    return made

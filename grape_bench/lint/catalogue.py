"""All checks: what the families of this folder hold."""

from collections.abc import Iterator

from grape_bench.finding import Rule
from grape_bench.lint import Check, claims, device, ignore, options, signals, skips

FAMILIES = (signals, options, device, skips, claims)


def checks() -> Iterator[Check]:
    """Every check by its code."""
    yield from (one for family in FAMILIES for one in vars(family).values() if isinstance(one, Check))


def rules() -> tuple[Rule, ...]:
    """What every code of a suite stands for, those of ignore comments last."""
    return (*(one.rule for one in checks()), *ignore.RULES)

"""All checks of one model, in an order in which the cause comes before what follows from it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from grape_bench.finding import Finding, Remark
from grape_bench.model_check import decoding, doubled, expanded, masks, padding, shifted, tables
from grape_bench.model_check.adapters import adapted
from grape_bench.model_check.rules import DECODE, DOUBLED, EXPANDED, MASK, PADDING, RULES, SHIFT, TABLE
from grape_bench.model_check.subject import NotChecked, Subject

Check = Callable[[Subject, dict[str, Finding]], Iterator[Finding | Remark]]
AS_IT_CAME: tuple[tuple[str, Check], ...] = ((TABLE.code, tables.check), (MASK.code, masks.finite))
WIDENED: tuple[tuple[str, Check], ...] = (
    (DOUBLED.code, doubled.check),
    (MASK.code, masks.check),
    (PADDING.code, padding.check),
    (SHIFT.code, shifted.check),
    (EXPANDED.code, expanded.check),
    (DECODE.code, decoding.check),
)


class Checkup(NamedTuple):
    """What was found, at most one finding a code, and what must be said beside it."""

    findings: tuple[Finding, ...]
    remarks: tuple[Remark, ...]

    @property
    def summary(self) -> str:
        """How many checks were made, and how many found something."""
        left_out = {one.code for one in self.remarks if one.kind == "not checked"} - {one.code for one in self.findings}
        found = f"{len(self.findings)} finding{'s' * (len(self.findings) != 1)}"
        return f"{found} in {len(RULES) - len(left_out)} checks, {len(left_out)} not made"


def checkup(value: Any) -> Checkup:
    """Check the positions of a model.

    Args:
        value: what a factory returns: a module, a module with example inputs, or an adapter. It is changed.

    Raises:
        UserError: it is none of these, or it cannot be run.
    """
    subject = Subject(adapted(value))
    found: dict[str, Finding] = {}
    remarks: list[Remark] = []
    _run(AS_IT_CAME, subject, found, remarks)
    subject.widen()
    _run(WIDENED, subject, found, remarks)
    by_code = sorted(found.values(), key=lambda one: one.code)
    return Checkup(tuple(by_code), tuple(sorted(remarks, key=lambda one: one.code)))


def _run(
    checks: tuple[tuple[str, Check], ...], subject: Subject, found: dict[str, Finding], remarks: list[Remark]
) -> None:
    for code, check in checks:
        try:
            for one in check(subject, found):
                if isinstance(one, Remark):
                    remarks.append(one)
                else:
                    found.setdefault(code, one)
        except NotChecked as reason:
            remarks.append(Remark(code, "not checked", str(reason)))

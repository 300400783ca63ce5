"""What the contract measured, as a page: GRAPE_BENCH_MATRIX=reports/backends.md pytest tests/backends."""

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the module that its tests share

ASKED = os.environ.get("GRAPE_BENCH_MATRIX")
ERRORS = "errors"  # the property that the contract records: backend, kind, work, number format, output, gradient
Key = tuple[str, str, str]  # number format, kind, backend

found: defaultdict[Key, dict[str, tuple[float, float]]] = defaultdict(dict)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, value in report.user_properties if report.when == "call" else ():
        if name == ERRORS:
            backend, kind, work, dtype, *errors = value
            found[dtype, kind, backend][work] = tuple(errors)


def pytest_sessionfinish() -> None:
    if ASKED and found:
        Path(ASKED).write_text("\n".join(page()) + "\n", encoding="utf-8")


def page() -> Iterator[str]:
    yield "# Backends against the oracle"
    yield ""
    yield "Errors of each kind of bias on each backend, relative to the largest number of the float64 oracle's tensor:"
    yield "of outputs (the worst of a whole sequence and of one decoded token) / of gradients (the worst of q, k, v and"
    yield "all that the bias is made of; * where q, k and v alone are offered). A dash is a skip. `tests/backends` made"
    yield "this page."
    names = sorted({backend for _, _, backend in found})
    for dtype in dict.fromkeys(key[0] for key in found):
        kinds = dict.fromkeys(key[1] for key in found if key[0] == dtype)
        yield f"\n## {dtype}\n"
        yield f"| bias | {' | '.join(names)} |"
        yield "|---" * (len(names) + 1) + "|"
        for kind in kinds:
            yield f"| {kind} | {' | '.join(entry(found.get((dtype, kind, name), {})) for name in names)} |"


def entry(works: dict[str, tuple[float, float]]) -> str:
    """Two figures, or as many as there are."""
    outputs = [output for output, _ in works.values()]
    gradients = [works[one][1] for one in ("backward", "learning") if one in works]
    if not outputs:
        return "–"
    return f"{max(outputs):.1e} / " + (f"{max(gradients):.1e}" + "*" * ("learning" not in works) if gradients else "–")

"""What was found of an encoding's laws: one JSON line."""

from typing import Literal

from grape_bench.cell import Frozen
from grape_bench.environment import Environment

HOLDS, FAILS = 1e-8, 1e-4  # residuals: at most of a law that holds, at least of one that fails


class Finding(Frozen):
    """What one law came to.

    Args:
        residual: the largest violation found; None where the law does not apply.
        must_hold: the encoding declares that it holds; otherwise that it fails.
    """

    law: str
    residual: float | None
    must_hold: bool

    @property
    def agrees(self) -> bool:
        """Whether the measurement is what was declared; a residual between the two thresholds agrees with neither."""
        if self.residual is None:
            return True
        return self.residual <= HOLDS if self.must_hold else self.residual >= FAILS

    def __str__(self) -> str:
        """The residual with a mark: ✓ it holds and ✗ it fails, both as declared, ! it is not as declared."""
        if self.residual is None:
            return "–"
        mark = ("✓" if self.must_hold else "✗") if self.agrees else "!"
        return f"{mark} {self.residual:.2g}"


class Verification(Frozen):
    """The laws of an encoding, and what it is made of. No machine decides these, so no machine's folder keeps them.

    Args:
        encoding: canonical text of an expression; versions: `name@version` of its parts.
        at: UTC, ISO 8601.
        message: why there are no findings.
        turns: it rotates queries and keys.
        bias: kinds of its bias in the algebra, in order; empty where it has none.
        rank: numerical rank of the bias less a constant in each row, at `tokens` tokens in a decoder; None where there
            is no matrix, or one that holds infinities.
        channels: extra channels of a lift; None where it does not lift.
        parameters: of one layer at the site `verify.MAP`.
        features: numbers kept beside each key and key head.
    """

    kind: Literal["verification"] = "verification"
    encoding: str
    versions: tuple[str, ...]
    at: str
    environment: Environment
    findings: tuple[Finding, ...] = ()
    message: str = ""
    turns: bool = False
    bias: tuple[str, ...] = ()
    rank: int | None = None
    channels: int | None = None
    tokens: int = 0
    parameters: int = 0
    features: int = 0
    not_streaming: str = ""

    @property
    def disagreements(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if not one.agrees)

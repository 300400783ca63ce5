"""Encodings against the laws that they declare."""

from collections.abc import Iterable, Sequence

import torch
from tabulate import tabulate

from grape_bench import laws, timing
from grape_bench.bias import Bias, LowRank
from grape_bench.catalogue import ARTICLE
from grape_bench.encodings import Site, build
from grape_bench.environment import Environment
from grape_bench.errors import Unsupported
from grape_bench.expression import Expression
from grape_bench.probe import Probe
from grape_bench.registry import Plugin, Registry
from grape_bench.verification import Finding, Verification

MAP = Site(width=512, heads=8, kv_heads=8, head_dim=64, train_length=2048, longest=4096, causal=True)
_RANK_TOKENS = 96


def configurations(names: Iterable[str] = ()) -> list[str]:
    """Encodings with their defaults and with their variants: those that are named, or all and the article's sum."""
    registry, asked = Registry("encodings"), list(names)
    texts = [text for name in asked or registry for text in _texts(registry[name])]
    return texts if asked else [*texts, ARTICLE[-1]]


def verify(text: str, environment: Environment) -> Verification:
    """Measure all laws of one encoding.

    Raises:
        UserError: the text is no expression over known encodings.
    """
    expression = Expression.parse(text, Registry("encodings"))
    shared = {"encoding": str(expression), "versions": expression.versions(), "at": timing.stamp()}
    try:
        with torch.no_grad():
            return Verification(**shared, environment=environment, **_measured(str(expression)))
    except Unsupported as error:
        return Verification(**shared, environment=environment, message=str(error))


def table(found: Sequence[Verification]) -> str:
    """Residuals of all laws: ✓ where one holds and ✗ where it fails, both as declared, and ! where it is not so."""
    names = [law.__name__ for law in (*laws.DECLARED, *laws.UNIVERSAL)]
    rows = [[one.encoding, *map(str, one.findings or [one.message])] for one in found]
    return tabulate(rows, ["encoding", *names], disable_numparse=True)


def summary(found: Sequence[Verification]) -> str:
    """What was found, in a line for each disagreement and one for the whole."""
    lines = [
        f"{one.encoding}: {finding.law} should {'hold' if finding.must_hold else 'fail'}, "
        f"and its residual is {finding.residual:.4g}"
        for one in found
        for finding in one.disagreements
    ]
    wrong, skipped = (sum(map(bool, each)) for each in ([o.disagreements for o in found], [o.message for o in found]))
    total = f"{len(found)} verified: {len(found) - wrong - skipped} as declared, {wrong} not, {skipped} skipped"
    return "\n".join([*lines, total])


def _texts(plugin: Plugin) -> list[str]:
    inner = [str(plugin.facts["around"])] if plugin.wraps else []
    options = ["", *plugin.facts.get("variants", ())]
    made = [", ".join([*inner, *([one] if one else [])]) for one in options]
    return [f"{plugin.name}({one})" if one else plugin.name for one in made]


def _measured(text: str) -> dict[str, object]:
    probe = Probe(text)
    value, _ = probe.bias_value(torch.arange(_RANK_TOKENS))
    parts = value.parts() if value else ()
    return {
        "findings": tuple(_findings(probe)),
        "turns": laws.turned(probe),
        "bias": tuple(type(one).__name__ for one in parts),
        "rank": _rank(value),
        "channels": _channels(parts),
        "tokens": _RANK_TOKENS,
        "parameters": sum(one.numel() for one in build(text, MAP).parameters()),
        "features": probe.decoder.features,
        "not_streaming": probe.decoder.not_streaming,
    }


def _findings(probe: Probe) -> Iterable[Finding]:
    for law in laws.DECLARED:
        side = probe.encoder if law is laws.reflection and probe.encoder else probe.decoder
        yield Finding(law=law.__name__, residual=law(probe), must_hold=law.__name__ in side.laws)
    for law in laws.UNIVERSAL:
        yield Finding(law=law.__name__, residual=law(probe), must_hold=law.__name__ not in probe.decoder.breaks)


def _rank(value: Bias | None) -> int | None:
    """Of one sequence, the largest over heads; row constants, which softmax does not see, are taken off first."""
    if value is None or value.reads_scores:
        return None
    matrix = value.tile()[0]
    if not matrix.isfinite().all():
        return None
    return int(torch.linalg.matrix_rank(matrix - matrix[..., :1], rtol=1e-10).max())


def _channels(parts: Sequence[Bias]) -> int | None:
    lifts = [one.lift()[0].shape[-1] for one in parts if isinstance(one, LowRank)]
    return sum(lifts) if lifts and len(lifts) == len(parts) else None

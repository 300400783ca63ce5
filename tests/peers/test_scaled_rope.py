"""What stretches RoPE: the frequency of each plane, and the factor of queries and keys."""

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from ours import installed
from source import definitions
from torch import Tensor

from grape_bench.encodings import At

D, BASE, TRAINED = 128, 10_000.0, 4096
PLANES = range(D // 2)
FREQUENCIES = [BASE ** (-2 * i / D) for i in PLANES]
SHORT, LONG = [1 + i / 100 for i in PLANES], [1 + i / 8 for i in PLANES]


def ours(expression: str, length: int = TRAINED) -> Tensor:
    """The D/2 frequencies and the factor that it turns by, in a text of so many tokens.

    A one on the first channel of each plane, at position 1, goes to factor * (cos w, sin w).
    """
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat_interleave(D // 2).reshape(1, 1, 1, D)
    keys = torch.zeros(1, 1, length, D, dtype=torch.float64)
    encoding = installed(f"{expression[:-1]}, layout='half')", 1, D, length=TRAINED)
    at = At(keys[:, 0], torch.tensor([1]), torch.arange(length), uniform=True)
    cos, sin = encoding.rotate(x, keys, None, at)[0].flatten().chunk(2)
    factor = (cos**2 + sin**2).sqrt()
    torch.testing.assert_close(factor, factor[:1].expand(D // 2))
    return torch.cat((torch.atan2(sin, cos), factor[:1]))


def transformers(kind: str, length: int | None = None, **parameters: object) -> Tensor:
    """The same of `ROPE_INIT_FUNCTIONS`."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    given = {"rope_type": kind, "rope_theta": BASE} | parameters
    config = LlamaConfig(head_dim=D, max_position_embeddings=TRAINED, rope_parameters=given)
    if kind != "dynamic":
        config.max_position_embeddings = 8 * TRAINED  # no factor is to be made of this
    frequencies, factor = ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=length)
    return torch.tensor([*frequencies.tolist(), factor])


def loop(planes: Iterator[float] | list[float], factor: float = 1.0) -> Tensor:
    return torch.tensor([*planes, factor], dtype=torch.float64)


def interpolated(factor: float) -> Tensor:
    return loop([w / factor for w in FREQUENCIES])


def rebased(factor: float) -> Tensor:
    base = BASE * factor ** (D / (D - 2))
    return loop([base ** (-2 * i / D) for i in PLANES])


def yarn(factor: float) -> Tensor:
    """Between the whole planes around 32 turns and 1 turn, linearly in the plane's number."""

    def plane(turns: float) -> float:
        return D * math.log(TRAINED / (turns * 2 * math.pi)) / (2 * math.log(BASE))

    low, high, out = math.floor(plane(32)), math.ceil(plane(1)), []
    for i, w in enumerate(FREQUENCIES):
        share = 0.0 if i <= low else 1.0 if i >= high else (i - low) / (high - low)
        out.append((1 - share) * w + share * w / factor)
    return loop(out, 0.1 * math.log(factor) + 1)


def llama3(factor: float, low: float = 1.0, high: float = 4.0) -> Tensor:
    out = []
    for w in FREQUENCIES:
        turns = TRAINED * w / (2 * math.pi)
        if turns < low:
            out.append(w / factor)
        elif turns > high:
            out.append(w)
        else:
            kept = (turns - low) / (high - low)
            out.append(kept * w + (1 - kept) * w / factor)
    return loop(out)


def proportional(keep: float) -> Tensor:
    return loop([w if i < int(keep * D // 2) else 0.0 for i, w in enumerate(FREQUENCIES)])


def longrope(factors: list[float]) -> Tensor:
    planes = [w / factor for w, factor in zip(FREQUENCIES, factors, strict=True)]
    return loop(planes, math.sqrt(1 + math.log(4) / math.log(TRAINED)))


ORIGINAL = {"original_max_position_embeddings": TRAINED}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **ORIGINAL}
LONGROPE = {"factor": 4.0, "short_factor": SHORT, "long_factor": LONG, **ORIGINAL}
SETS = f"longrope(short={tuple(SHORT)}, long={tuple(LONG)})"
Case = tuple[str, int, Callable[[], Tensor], Tensor]
CASES: dict[str, Case] = {
    "pi": ("pi(factor=4.0)", TRAINED, lambda: transformers("linear", factor=4.0), interpolated(4)),
    "dynamic_ntk": (
        "dynamic_ntk(factor=4.0)",
        2 * TRAINED,
        lambda: transformers("dynamic", 2 * TRAINED, factor=4.0),
        rebased(4 * 2 - 3),
    ),
    "dynamic_ntk, short": (
        "dynamic_ntk(factor=4.0)",
        100,
        lambda: transformers("dynamic", 100, factor=4.0),
        rebased(1),
    ),
    "yarn": ("yarn(factor=4.0)", TRAINED, lambda: transformers("yarn", factor=4.0, **ORIGINAL), yarn(4)),
    "yarn, far": ("yarn(factor=32.0)", TRAINED, lambda: transformers("yarn", factor=32.0, **ORIGINAL), yarn(32)),
    "llama3": ("llama3(factor=8.0)", TRAINED, lambda: transformers("llama3", **LLAMA3), llama3(8)),
    "longrope, short": (SETS, TRAINED, lambda: transformers("longrope", TRAINED, **LONGROPE), longrope(SHORT)),
    "longrope, long": (SETS, TRAINED + 1, lambda: transformers("longrope", TRAINED + 1, **LONGROPE), longrope(LONG)),
    "rope, proportional": (
        "rope(keep=0.25)",
        TRAINED,
        lambda: transformers("proportional", partial_rotary_factor=0.25),
        proportional(0.25),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_frequencies_are_those_of_transformers(name: str, meet) -> None:
    expression, length, theirs, expected = CASES[name]
    meet.agrees(name, "transformers", theirs(), ours(expression, length), expected, atol=2e-7)


def test_yarn_of_litgpt_has_its_ramp_the_wrong_way_round(meet) -> None:
    """Fast planes are interpolated and slow ones left alone, and the factor is missing."""
    config = {"factor": 4.0, "beta_fast": 32, "beta_slow": 1, "original_max_seq_len": TRAINED}
    theirs, got = litgpt(extra_config=config), ours("yarn(factor=4.0)")
    meet.is_wrong("yarn", "litgpt", theirs, got, yarn(4), by=0.75, fault="ramp inverted, no factor")
    assert (theirs[0].item(), got[0].item()) == (0.25, pytest.approx(1.0))
    assert (theirs[63] / got[63]).item() == pytest.approx(4.0, rel=1e-6)
    assert (theirs[-1].item(), got[-1].item()) == (1.0, pytest.approx(1.1386294))
    known = [1.0, 0.0562341288, 0.0054122768, 0.0003333804, 0.0000288695]
    assert got[[0, 20, 33, 46, 63]].tolist() == pytest.approx(known, abs=1e-8)


def test_llama3_of_litgpt(meet) -> None:
    config = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_seq_len": TRAINED}
    meet.agrees("llama3", "litgpt", litgpt(extra_config=config), ours("llama3(factor=8.0)"), llama3(8), atol=2e-7)


def test_interpolation_of_litgpt(meet) -> None:
    meet.agrees("pi", "litgpt", litgpt(condense_ratio=4), ours("pi(factor=4.0)"), interpolated(4), atol=2e-7)


def test_interpolation_of_others(meet) -> None:
    from rotary_embedding_torch import RotaryEmbedding
    from x_transformers.x_transformers import RotaryEmbedding as Embedding

    got, expected = ours("pi(factor=4.0)"), interpolated(4)
    angles, factor = Embedding(D, interpolation_factor=4.0).forward_from_seq_len(2)
    theirs = torch.tensor([*angles[0, 1, ::2].tolist(), factor])
    meet.agrees("pi", "x-transformers", theirs, got, expected, atol=2e-7)
    turn = RotaryEmbedding(D, interpolate_factor=4.0)
    theirs = torch.tensor([*turn(turn.get_seq_pos(2))[1, ::2].tolist(), 1.0])
    meet.agrees("pi", "rotary-embedding-torch", theirs, got, expected, atol=2e-7)


def test_a_larger_base_of_others(meet) -> None:
    from rotary_embedding_torch import RotaryEmbedding
    from x_transformers.x_transformers import RotaryEmbedding as Embedding

    got, expected = ours("ntk(factor=4.0)"), rebased(4)
    theirs = torch.tensor([*Embedding(D, base_rescale_factor=4.0).inv_freq.tolist(), 1.0])
    meet.agrees("ntk", "x-transformers", theirs, got, expected, atol=2e-7)
    theirs = torch.tensor([*RotaryEmbedding(D, theta_rescale_factor=4.0).freqs.tolist(), 1.0])
    meet.agrees("ntk", "rotary-embedding-torch", theirs, got, expected, atol=2e-7)


def litgpt(**options: object) -> Tensor:
    """Frequencies and factor out of its cosines and sines at position 1."""
    model = definitions("litgpt.model", "yarn_get_mscale", "build_rope_cache")
    cos, sin = (one[1, : D // 2] for one in model.build_rope_cache(2, D, **options))
    return torch.cat((torch.atan2(sin, cos), (cos[:1] ** 2 + sin[:1] ** 2).sqrt()))

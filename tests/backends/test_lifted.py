"""Extra channels in place of a bias: long sequences in half precision, and what is refused."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from grape_bench.backends import Mask, noting
from grape_bench.backends.lifted import Lifted
from grape_bench.bias import LowRank, Rowwise, Sum, Toeplitz
from grape_bench.errors import Unsupported

LONGEST = 65_536
SLOPES = torch.tensor([2.0**-1, 2.0 ** (-8 / 12), 2.0**-8, 0.0061])  # two of them need more bits than bfloat16 has


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def linear(T: int, S: int, kind: type[LowRank] = LowRank, *, bounded: bool = False) -> LowRank:
    """Slopes times positions counted from the middle, as ALiBi."""
    at = torch.arange(S, dtype=torch.float32) - S // 2
    return kind(SLOPES[None, :, None, None].expand(1, 4, T, 1), at[None, None, :, None], bounded=bounded)


def exactly(q: Tensor, k: Tensor, v: Tensor, bias: LowRank) -> Tensor:
    """The last queries one by one in float64; of a softmax, the distance to the query does as well as the position."""
    T, S, outs = q.shape[-2], k.shape[-2], []
    far = torch.arange(S - 1, -1, -1, dtype=torch.float64)
    for i in range(T):
        seen = S - T + i + 1
        scores = (k[:, :, :seen].double() @ q[:, :, i, :, None].double())[..., 0] * q.shape[-1] ** -0.5
        scores -= SLOPES.double()[:, None] * far[S - seen :]
        outs.append(scores.softmax(dim=-1)[..., None, :] @ v[:, :, :seen].double())
    return torch.cat(outs, dim=-2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_alibi_at_65536_tokens_keeps_half_precision(dtype: torch.dtype) -> None:
    q, k, v = (draw(seed, 1, 4, n, 16).to(dtype) for seed, n in ((1, 16), (2, LONGEST), (3, LONGEST)))
    exact = exactly(q, k, v, linear(16, LONGEST))

    def error(bias: LowRank) -> float:
        out = Lifted().attend(q, k, v, bias, Mask(causal=True)).double()
        return ((out - exact).abs().amax(dim=(0, 2, 3)) / exact.abs().amax(dim=(0, 2, 3))).max().item()

    assert error(linear(16, LONGEST)) <= 5e-3
    # one number of half precision for each position is another model, or this test would see nothing
    assert error(linear(16, LONGEST, bounded=True)) > 0.1


@torch.no_grad()
def test_grouped_queries_lift_slopes_of_their_own() -> None:
    q, k, v = (draw(seed, 1, heads, 512, 16).bfloat16() for seed, heads in ((1, 4), (2, 2), (3, 2)))
    exact = exactly(q, *(one.repeat_interleave(2, dim=1) for one in (k, v)), linear(512, 512))
    out = Lifted().attend(q, k, v, linear(512, 512), Mask(causal=True)).double()
    assert (out - exact).abs().max() <= 5e-3 * exact.abs().max()


def test_gates_that_learn_leave_half_precision_and_say_so() -> None:
    """Their gradient runs along a sum over the sequence: rounded, it would be wrong by 4 to 14 %."""
    S = 512
    q, k, v, push = (draw(seed, 1, 2, S, 16).bfloat16() for seed in range(4))
    gate = (draw(5, 1, 2, S, 1) + 2).requires_grad_()

    def gradient(q: Tensor, k: Tensor, v: Tensor, gate: Tensor, push: Tensor) -> Tensor:
        u = torch.ones(1, 2, S, 1, dtype=gate.dtype)
        out = Lifted().attend(q, k, v, LowRank(u, -F.logsigmoid(gate).cumsum(dim=2)), Mask(causal=True))
        return torch.autograd.grad(out, gate, push)[0]

    with noting() as notes:
        got = gradient(q, k, v, gate, push)
    exact = gradient(*(one.detach().double().requires_grad_() for one in (q, k, v, gate)), push.double())
    assert notes == ["float32 inside"]
    assert (got - exact).norm() <= 1e-3 * exact.norm()
    with noting() as notes, torch.no_grad():
        Lifted().attend(q, k, v, LowRank(torch.ones(1, 2, S, 1), gate), Mask(causal=True))
    assert notes == []


@pytest.mark.parametrize(
    ("bias", "reason"),
    [
        (Rowwise(lambda rows, scores: scores, [], reads_scores=True), "reads the scores"),
        (Rowwise(lambda rows, scores: torch.zeros(1, 4, 8, 8)[:, :, rows], []), "nothing to lift"),
        (Toeplitz(lambda d, m: m[:, None] * d, [SLOPES], torch.arange(8), torch.arange(8), uniform=True), "nothing to"),
        (
            Toeplitz(lambda d, m: m[:, None, None] * d, [SLOPES], torch.arange(8), torch.arange(8), uniform=False),
            "nothing to",
        ),
    ],
)
def test_what_has_no_finite_rank_is_refused(bias: Rowwise | Toeplitz, reason: str) -> None:
    qkv = [draw(seed, 1, 4, 8, 4) for seed in range(3)]
    with pytest.raises(Unsupported, match=reason):
        Lifted().attend(*qkv, bias, Mask())
    if isinstance(bias, Toeplitz) and bias.values is not None:
        Lifted().attend(*qkv, Sum([bias, linear(8, 8)]), Mask())  # a band rides along
    else:
        with pytest.raises(Unsupported):
            Lifted().attend(*qkv, Sum([bias, linear(8, 8)]), Mask())

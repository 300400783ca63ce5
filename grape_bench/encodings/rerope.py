"""ReRoPE: RoPE whose distances stop growing, or grow more slowly, beyond a window."""

import math
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from grape_bench.bias import Bias, Rowwise
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import Rotation, spectrum
from grape_bench.errors import Unsupported


class ReRope(Encoding):
    """Turn by the distance up to a window, and beyond it by less, so that no angle is new in a longer text.

        score(i, j) = q_i^T R(-c(i - j)) k_j,   c(d) = d within w,   sign(d) (w + leak (|d| - w)) beyond

    Queries and keys are turned as in RoPE, and a bias replaces the scores beyond the window. Towards the past
    c(i - j) = (leak i + (1 - leak) w) - leak j there, so those are products of turned vectors too. The score is a
    function of distance, but of no representation: c(a + b) is not c(a) + c(b).

    Args:
        site: its head_dim D must be even; half its train_length is the default window.
        window: w, tokens.
        leak: slope of c beyond the window; 0 is ReRoPE, a value between is leaky ReRoPE, 1 would be RoPE.
        base: of the spectrum, no unit.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + D/2) when `half`.

    Raises:
        Unsupported: D is odd, the window is below 1, or the leak is not in [0, 1).

    Source: Su 2023, "ReRoPE", kexue.fm/archives/9708; towards the future in an encoder: ours.
    """

    group = "translations"
    representation = "SO(2) blocks up to the window, none beyond"
    laws = ("relative", "identity", "homomorphism", "isometric")  # these three of `rotate`, not of the scores
    variants = ("window=4", "window=4, leak=0.25, layout='half'")
    by_content = True

    def __init__(
        self,
        site: Site,
        *,
        window: int | None = None,
        leak: float = 0.0,
        base: float = 10_000.0,
        layout: Literal["interleaved", "half"] = "interleaved",
    ):
        super().__init__()
        self.window = max(site.train_length // 2, 1) if window is None else window
        if self.window < 1 or not 0 <= leak < 1:
            raise Unsupported(f"rerope: a window of at least 1 token and 0 <= leak < 1, got {self.window} and {leak}")
        self.leak, self.causal, self.features = leak, site.causal, site.head_dim
        self.rotation = Rotation(spectrum(site.head_dim, base), layout)

    def state(self, k: Tensor, at: At, carry: Any) -> tuple[Tensor, Any]:
        return k, carry

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self.rotation(q, k, at)

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        assert features is not None
        wide = torch.promote_types(q.dtype, torch.float32)
        q, k = q.to(wide), features.to(wide)
        sides = (1,) if self.causal else (1, -1)  # the past, and the future
        turned = [self.rotation(q, k, one) for one in (at, *(self._beyond(at, side, wide) for side in sides))]

        def correction(rows: slice, _: None, near_k: Tensor, far_k: Tensor, near_q: Tensor, *far_q: Tensor) -> Tensor:
            distance = at.q_pos[..., rows, None] - at.k_pos[..., None, :]
            distance = distance if distance.dim() == 2 else distance[:, None]
            near = _scores(near_q[..., rows, :], near_k)
            past, *future = (_scores(one[..., rows, :], far_k) for one in far_q)
            far = torch.where(distance > 0, past, future[0]) if future else past
            return torch.where(distance.abs() > self.window, far - near, 0.0)

        return Rowwise(correction, [turned[0][1], turned[1][1], *(queries for queries, _ in turned)])

    def _beyond(self, at: At, side: int, dtype: torch.dtype) -> At:
        """Where queries and keys stand for a score beyond the window: c(i - j) is the difference."""
        shift = side * (1 - self.leak) * self.window

        def make() -> At:
            q_pos, k_pos = (self.leak * positions.to(dtype) for positions in (at.q_pos, at.k_pos))
            return replace(at, q_pos=q_pos + shift, k_pos=k_pos, tables={})

        return at.once(("rerope", shift, self.leak, dtype), make)  # type: ignore[no-any-return]


def _scores(q: Tensor, k: Tensor) -> Tensor:
    scores: Tensor = q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).transpose(-1, -2)
    return scores / math.sqrt(q.shape[-1])


PLUGIN = ReRope

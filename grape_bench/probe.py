"""One encoding in the hands of its laws: content, outputs, biases and turns.

Shapes: B batch, H heads, N tokens, D head channels, C model channels.
"""

from dataclasses import replace

import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Backend, Mask
from grape_bench.bias import Bias
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported
from grape_bench.model import named_generator
from grape_bench.operation import scramble
from grape_bench.registry import Registry

H, KV_HEADS, D, C = 4, 2, 8, 32
SITE = Site(width=C, heads=H, kv_heads=KV_HEADS, head_dim=D, train_length=64, longest=2048)
FAR = (256, 4096, 65_536, 131_071)  # where half precision cannot tell a position from the next

All = slice(None)


class Probe:
    """One encoding as a decoder sees it and as an encoder does, its parameters drawn at random.

    Args:
        text: of an expression.

    Raises:
        UserError: the text is no expression over known encodings.
        Unsupported: it cannot live in a decoder of this size.
    """

    def __init__(self, text: str):
        self.text = text
        self.decoder = self._make(replace(SITE, causal=True))
        self.oracle: Backend = Registry("backends")["eager"].load()()
        try:
            self.encoder: Encoding | None = self._make(SITE)
        except Unsupported:
            self.encoder = None

    def far(self) -> Encoding:
        """The decoder's encoding where sequences are long enough for half precision to fail."""
        return self._make(replace(SITE, causal=True, longest=max(FAR) + 2))

    def _make(self, site: Site) -> Encoding:
        encoding = build(self.text, site).double().eval()
        scramble(encoding)
        return encoding

    def tokens(self, count: int, batch: int = 2) -> Tensor:
        """(B, N, C), the same first tokens for every count."""
        return torch.stack([_content(f"tokens {b}", 512, C)[:count] for b in range(batch)])

    def projected(self, x: Tensor, plain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q and k of layer inputs x, and v of the tokens without positions, which then show in weights alone."""
        made = (source @ _content(name, C, C).to(x) * C**-0.5 for name, source in (("q", x), ("k", x), ("v", plain)))
        q, k, v = (one.unflatten(-1, (H, D)).transpose(1, 2) for one in made)
        return q, k[:, ::2], v[:, ::2]

    def outputs(
        self,
        positions: Tensor,
        *,
        encoding: Encoding | None = None,
        tokens: Tensor | None = None,
        uniform: bool = False,
        causal: bool = True,
        rows: slice = All,
    ) -> Tensor:
        """Outputs (B, H, N, D) of one layer that sees positions through every hook."""
        encoding = encoding or self.decoder
        plain = self.tokens(positions.shape[-1]) if tokens is None else tokens
        x = encoding.embed(plain, positions)
        q, k, v = self.projected(x, plain)
        at = At(x, positions[..., rows], positions, uniform)
        return attend(encoding, self.oracle, (q[:, :, rows], k, v), at, Mask(causal))

    def bias(self, positions: Tensor, *, encoding: Encoding | None = None) -> Tensor | None:
        """The bias (B or 1, H, N, N) on fixed content; None where it has none."""
        value, scores = self.bias_value(positions, encoding=encoding)
        return value.tile(scores=scores if value.reads_scores else None) if value else None

    def bias_value(self, positions: Tensor, *, encoding: Encoding | None = None) -> tuple[Bias | None, Tensor]:
        """The bias itself, and the scaled scores (B, H, N, N) of its content."""
        encoding = encoding or self.decoder
        x = self.tokens(len(positions))
        q, k, _ = self.projected(x, x)
        at = At(x, positions, positions, uniform=False)
        features, _ = encoding.state(k, at, None)
        turned = encoding.rotate(q, k, features, at)
        scores = turned[0] @ turned[1].repeat_interleave(H // KV_HEADS, dim=1).transpose(-1, -2) / D**0.5
        return encoding.bias(q, features, at), scores

    def turns(self, start: int, count: int) -> tuple[Tensor, Tensor, bool]:
        """G of queries (H, N, D, D) and of keys, read off from turned basis vectors, and whether content decides."""
        positions = torch.arange(start, start + count)
        x = self.tokens(count, batch=1).expand(D, -1, -1)
        basis = torch.eye(D, dtype=torch.float64)[:, None, None, :]
        q, k = basis.expand(D, H, count, D), basis.expand(D, KV_HEADS, count, D)
        at = At(x, positions, positions, uniform=True)
        features, _ = self.decoder.state(k, at, None)
        turned = self.decoder.rotate(q, k, features, at)
        g, other = (one.permute(1, 2, 3, 0) for one in turned)
        return g, other, features is not None


def _content(name: str, *shape: int) -> Tensor:
    return torch.randn(shape, generator=named_generator(0, name), dtype=torch.float64)

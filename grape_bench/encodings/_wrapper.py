"""What a wrapper leaves to the encoding that it wraps."""

from typing import Any

import torch
from torch import Tensor

from grape_bench.bias import Bias
from grape_bench.encodings import At, Encoding, Site
from grape_bench.errors import Unsupported


class Wrapper(Encoding):
    """Hands every hook on to the wrapped encoding; a wrapper overrides what it changes.

    `reset` is not handed on, since the model resets every encoding that it contains by its own name.
    """

    inner: Encoding

    def wrap(self, inner: Encoding) -> None:
        """Take the encoding in, and state its facts as one's own, beside what the wrapper's class breaks itself."""
        self.inner = inner
        self.features, self.domain, self.shared, self.laws = inner.features, inner.domain, inner.shared, inner.laws
        self.breaks = tuple(dict.fromkeys((*inner.breaks, *type(self).breaks)))
        self.not_streaming = type(self).not_streaming or inner.not_streaming

    @property
    def hooks(self) -> frozenset[str]:
        return self.inner.hooks

    def moved(self, at: At) -> At:
        """Where the wrapped encoding is told that the tokens stand."""
        return at

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.inner.embed(x, self.moved(At(x, positions, positions, uniform=False)).k_pos)

    def state(self, k: Tensor, at: At, carry: Any) -> tuple[Tensor | None, Any]:
        return self.inner.state(k, self.moved(at), carry)

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self.inner.rotate(q, k, features, self.moved(at))

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias | None:
        return self.inner.bias(q, features, self.moved(at))

    def redraw(self, generator: torch.Generator) -> None:
        self.inner.redraw(generator)


def probe(encoding: Encoding, site: Site, position: float | int) -> Bias | None:
    """Run every hook on one token at a position, and return the bias."""
    at = torch.tensor([position])
    x = encoding.embed(torch.zeros(1, 1, site.width), at)
    q, k = (torch.zeros(1, heads, 1, site.head_dim) for heads in (site.heads, site.kv_heads))
    return encoding.encode(q, k, At(x, at, at, uniform=False))[2]


def require_reals(wrapper: str, inner: Encoding, site: Site) -> None:
    """Refuse an encoding that cannot stand between two tokens.

    Raises:
        Unsupported: with its reason.
    """
    try:
        probe(inner, site, 0.5)
    except (IndexError, RuntimeError, TypeError, Unsupported) as error:
        raise Unsupported(
            f"{wrapper} moves tokens to real positions, which the wrapped encoding refuses: {error}"
        ) from None

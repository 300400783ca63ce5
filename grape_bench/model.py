"""The one small transformer, in which only the encoding changes.

Shapes: B batch, T tokens, C model channels, m rows of the tail.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench.attention import Attention, Cache
from grape_bench.backends import Backend, Mask
from grape_bench.cell import ModelOptions
from grape_bench.encodings import At, Encoding, Site, build_layers
from grape_bench.errors import Unsupported


class TokenNorm(nn.BatchNorm1d):
    """Normalise each channel over all tokens of a batch; what is tested is normalised by running statistics."""

    def forward(self, x: Tensor) -> Tensor:
        normalised: Tensor = super().forward(x.flatten(0, 1))
        return normalised.view_as(x)


NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "batch": TokenNorm}


class Layer(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)): pre-norm."""

    def __init__(self, site: Site, encoding: Encoding, backend: Backend, options: ModelOptions):
        super().__init__()
        self.norm_attention, self.norm_mlp = (NORMS[options.norm](site.width) for _ in range(2))
        self.attention = Attention(site, encoding, backend, qk_norm=options.qk_norm, kv_shift=options.kv_shift)
        self.up, self.down = nn.Linear(site.width, 4 * site.width), nn.Linear(4 * site.width, site.width)

    def forward(self, x: Tensor, at: At, mask: Mask, cache: Cache | None) -> Tensor:
        mixed: Tensor = self.attention(replace(at, x=self.norm_attention(x)), mask, cache)
        x = x[:, -mixed.shape[1] :] + mixed
        updated: Tensor = x + self.down(F.gelu(self.up(self.norm_mlp(x))))
        return updated


class Transformer(nn.Module):
    """A pre-norm transformer that answers questions at the last rows of its input.

    Args:
        options: widths and direction; vocabulary, answers: numbers of token and answer ids.
        kinds: number of segment ids that tail tokens carry; 0 where they carry none.
        encoding: text of an expression; backend: computes attention.
        lengths: tokens of the training sequences, and of the longest sequence it will be asked for.

    Raises:
        Unsupported: heads do not divide the width, or kv_heads the heads, or the encoding cannot live here.
    """

    def __init__(
        self,
        options: ModelOptions,
        encoding: str,
        backend: Backend,
        *,
        vocabulary: int,
        answers: int,
        kinds: int = 0,
        lengths: tuple[int, int],
    ):
        super().__init__()
        self.options = options
        self.tokens, self.segments = nn.Embedding(vocabulary, options.width), nn.Embedding(kinds, options.width)
        site = self._site(lengths)
        made = build_layers(encoding, site)
        self.layers = nn.ModuleList(Layer(site, one, backend, options) for one in made)
        self.norm, self.head = NORMS[options.norm](options.width), nn.Linear(options.width, answers)

    @property
    def attentions(self) -> list[Attention]:
        """Those of all layers, from the first to the last."""
        return [cast(Layer, one).attention for one in self.layers]

    def _site(self, lengths: tuple[int, int]) -> Site:
        width, heads = self.options.width, self.options.heads
        kv_heads = self.options.kv_heads or heads
        if width % heads or heads % kv_heads:
            raise Unsupported(f"{heads} heads must divide the width {width}, and {kv_heads} kv_heads the heads")
        return Site(
            width, heads, kv_heads, width // heads, *lengths, layers=self.options.layers, causal=self.options.causal
        )

    def forward(
        self,
        tokens: Tensor,
        *,
        tail: int | None = None,
        kinds: Tensor | None = None,
        keys: Tensor | None = None,
        documents: Tensor | None = None,
        caches: list[Cache] | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Answer logits (B, m, answers) of the last `tail` tokens (None: of all).

        Args:
            tokens: (B, T) ids; kinds: (m,) segment ids of the tail.
            keys: (B, S), False at padding.
            documents: (B, S), which document each token belongs to, where several are packed into one sequence.
            caches: one a layer, of earlier tokens, for decoding; these tokens are put behind them.
            positions: (T,) or (B, T), where the tokens stand; None for 0 .. T-1, or the places behind a cache.
        """
        start = caches[0].length if caches else 0
        uniform = positions is None and start == 0  # behind a cache, earlier keys may stand anywhere
        if positions is None:
            positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        x, mask = self._embed(tokens, kinds, positions), Mask(self.options.causal, keys, documents)
        at = At(x, positions, positions, uniform)
        for index, layer in enumerate(self.layers):
            if tail and index == len(self.layers) - 1:  # the last layer answers: it computes the tail's rows alone
                at = At(x, positions[..., -tail:], positions, uniform)
            x = layer(x, at, mask, caches[index] if caches else None)
        return cast(Tensor, self.head(self.norm(x if tail is None else x[:, -tail:])))

    def _embed(self, tokens: Tensor, kinds: Tensor | None, positions: Tensor) -> Tensor:
        x = self.tokens(tokens)
        if kinds is not None:
            x = torch.cat((x[:, : -len(kinds)], x[:, -len(kinds) :] + self.segments(kinds)), dim=1)
        return cast(Layer, self.layers[0]).attention.encoding.embed(x, positions)

    def reset(self, seed: int, *, start: str = "standard") -> None:
        """Draw all initial values. Each parameter is drawn from hash(seed, its name), so that an encoding's extra
        parameters shift no shared one.

        Args:
            start: `tied` copies each layer's query projection to its key projection.
        """
        for name, module in self.named_modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, 0.0, 0.3, generator=named_generator(seed, name))
            elif isinstance(module, nn.Linear):
                residual = name.endswith(("attention.out", "down"))
                std = module.in_features**-0.5 / (math.sqrt(2 * len(self.layers)) if residual else 1.0)
                nn.init.normal_(module.weight, 0.0, std, generator=named_generator(seed, name))
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for name, module in self.named_modules():  # last: an encoding knows better about layers of its own
            if isinstance(module, Encoding):
                module.reset(named_generator(seed, name))
        if start == "tied":
            self._tie()

    def redraw(self, seed: int, moment: str) -> None:
        """Let encodings draw what is random in each step, from hash(seed, moment); all layers of one draw alike."""
        for encoding in {id(one.encoding): one.encoding for one in self.attentions}.values():
            encoding.redraw(named_generator(seed, f"redraw/{moment}"))

    def _tie(self) -> None:
        for attention in self.attentions:
            rows = attention.key.weight.shape[0]
            attention.key.load_state_dict({key: value[:rows] for key, value in attention.query.state_dict().items()})


def named_generator(seed: int, name: str, device: str = "cpu") -> torch.Generator:
    """A generator seeded by hash(seed, name)."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:8], "big") >> 1)

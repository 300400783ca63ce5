"""What a cost cell runs: random inputs, an encoding and a backend, without any clock.

Shapes: B batch, H heads, T tokens, D head channels, C model channels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional as F

from grape_bench.attention import Cache, attend
from grape_bench.backends import Backend, Mask
from grape_bench.cell import CostCell, ModelOptions
from grape_bench.compiler import require_compiler
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported
from grape_bench.model import Transformer, named_generator
from grape_bench.registry import Registry

_VOCABULARY = 64


@dataclass
class AttentionOperation:
    """The attention operation of one cell on random tensors.

    Args:
        qkv: q (B, H, T, D), k and v (B, kv_heads, T, D), in the cell's dtype.
        x: (B, T, C) layer input, for encodings that read it.
        encoding: its parameters drawn at random, so that zero starts hide no fault and no work.
    """

    encoding: Encoding
    backend: Backend
    qkv: tuple[Tensor, Tensor, Tensor]
    x: Tensor
    causal: bool
    compiled: bool = False

    @classmethod
    def of(cls, cell: CostCell, device: str, *, length: int | None = None, batch: int | None = None) -> Self:
        """Build it for a cell, or for the cell at another length and batch.

        Raises:
            Unsupported: kv_heads do not divide the heads, or the encoding cannot live at this setting.
        """
        length, batch, kv_heads = length or cell.length, batch or cell.batch, cell.kv_heads or cell.heads
        if cell.heads % kv_heads:
            raise Unsupported(f"{kv_heads} kv_heads do not divide {cell.heads} heads")
        width, dtype = cell.heads * cell.head_dim, getattr(torch, cell.dtype)
        site = Site(width, cell.heads, kv_heads, cell.head_dim, cell.length, cell.length, causal=cell.causal)
        encoding = build(cell.encoding, site)
        scramble(encoding)
        generator = named_generator(0, "inputs", device)  # where they are used: a long x takes a host seconds
        shapes = [(batch, heads, length, cell.head_dim) for heads in (cell.heads, kv_heads, kv_heads)]
        every = (*shapes, (batch, length, width))
        q, k, v, x = (torch.randn(shape, generator=generator, device=device) for shape in every)
        backend = Registry("backends")[cell.backend].load()()
        made = tuple(one.to(device, dtype) for one in (q, k, v))
        return cls(
            encoding.to(device), backend, (made[0], made[1], made[2]), x.to(device, dtype), cell.causal, cell.compiled
        )

    def at(self, *, start: int = 0) -> At:
        """All tokens, the first one at position `start`."""
        positions = torch.arange(start, start + self.x.shape[1], device=self.x.device)
        return At(self.x, positions, positions, uniform=True)

    def forward(self, at: At | None = None) -> Tensor:
        """Outputs (B, H, T, D)."""
        return self._attend(self.encoding, self.backend, self.qkv, at or self._here, Mask(self.causal))

    @cached_property
    def _here(self) -> At:  # as the layers of a model do, its calls share what depends on positions alone
        return self.at()

    @cached_property
    def _attend(self) -> Callable[..., Tensor]:
        if not self.compiled:
            return attend
        require_compiler(self.x.device.type)
        return torch.compile(attend)

    def leaves(self) -> list[Tensor]:
        """What gradients are taken of: q, k, v and the encoding's parameters."""
        return [one.requires_grad_() for one in (*self.qkv, *self.encoding.parameters())]

    def gradients(self, out: Tensor, leaves: list[Tensor]) -> list[Tensor]:
        """Gradients of the leaves for a fixed random direction of the outputs; zeros where one has no part in it."""
        return list(torch.autograd.grad(out, leaves, direction(out), materialize_grads=True))

    def decoder(self) -> "Decoder":
        """One query at the last token, against a cache of all earlier ones.

        Raises:
            Unsupported: the encoding declares that it cannot decode from a cache.
        """
        if self.encoding.not_streaming:
            raise Unsupported(f"it does not decode from a cache: {self.encoding.not_streaming}")
        return Decoder(self)


class Decoder:
    """Decodes the last token again and again from the same cache."""

    def __init__(self, operation: AttentionOperation):
        self.operation = operation
        whole = operation.at()
        self._cache = Cache(operation.x.shape[1])
        self._fill(whole)
        self._length, self._carry = self._cache.length, self._cache.carry
        self._at = whole

    def step(self) -> Tensor:
        """Outputs (B, H, 1, D) of the last token."""
        self._cache.length, self._cache.carry = self._length, self._carry
        positions = self._at.k_pos[-1:]
        return self._attend(slice(-1, None), positions, positions)

    def _fill(self, at: At) -> None:
        """Put all earlier keys into the cache, and ask for the last of them alone: nobody reads the other outputs."""
        positions = at.k_pos[:-1]
        if len(positions):
            self._attend(slice(None, -1), positions[-1:], positions)

    def _attend(self, tokens: slice, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        op = self.operation
        q, k, v = (one[:, :, tokens] for one in op.qkv)
        part = At(op.x[:, tokens], q_pos, k_pos, uniform=True)
        qkv = q[:, :, -len(q_pos) :], k, v
        return op._attend(op.encoding, op.backend, qkv, part, Mask(op.causal), self._cache)


class TrainStep:
    """One optimizer step of the suite's model on random tokens: forward, backward, AdamW.

    Raises:
        Unsupported: as the model.
    """

    def __init__(self, cell: CostCell, device: str):
        options = ModelOptions(
            width=cell.heads * cell.head_dim,
            layers=cell.layers,
            heads=cell.heads,
            kv_heads=cell.kv_heads,
            causal=cell.causal,
        )
        self.model = Transformer(
            options,
            cell.encoding,
            Registry("backends")[cell.backend].load()(),
            vocabulary=_VOCABULARY,
            answers=_VOCABULARY,
            lengths=(cell.length, cell.length),
        )
        self.model.reset(0)
        self.model.to(device)
        if cell.compiled:
            require_compiler(device)
        self._answer = torch.compile(self.model) if cell.compiled else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        generator = named_generator(0, "tokens")
        tokens, labels = torch.randint(_VOCABULARY, (2, cell.batch, cell.length), generator=generator).to(device)
        self._tokens, self._labels = tokens, labels
        self._device, self._dtype = device, cell.dtype
        self._scaler = torch.amp.GradScaler(device, enabled=cell.dtype == "float16")

    def step(self) -> Tensor:
        """The loss, after one step."""
        half = self._dtype != "float32"
        with torch.autocast(self._device, getattr(torch, self._dtype) if half else torch.bfloat16, enabled=half):
            logits = self._answer(self._tokens)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), self._labels.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()
        self._scaler.step(self.optimizer)
        self._scaler.update()
        return loss


def direction(out: Tensor) -> Tensor:
    """A fixed random direction of the outputs, along which gradients are taken."""
    return torch.randn(out.shape, generator=named_generator(0, "direction")).to(out)


def scramble(encoding: Encoding) -> None:
    """Draw every parameter from N(0, 1/4), each from its own name."""
    with torch.no_grad():
        for name, parameter in encoding.named_parameters():
            parameter.normal_(0.0, 0.5, generator=named_generator(0, name))

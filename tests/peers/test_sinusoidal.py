"""Sinusoidal: waves added to the token vectors, whose sines and cosines peers put side by side."""

import math

import torch
from ours import installed
from torch import Tensor

T, C = 300, 16


def ours() -> Tensor:
    """(T, C), sines before cosines."""
    waves = installed("sinusoidal", 2, C // 2).embed(torch.zeros(1, T, C, dtype=torch.float64), torch.arange(T))[0]
    return torch.cat((waves[:, ::2], waves[:, 1::2]), dim=-1)


def loop() -> Tensor:
    rows = [[t * 10_000 ** (-2 * i / C) for i in range(C // 2)] for t in range(T)]
    return torch.tensor([[*map(math.sin, row), *map(math.cos, row)] for row in rows], dtype=torch.float64)


def test_waves_are_those_of_x_transformers(meet) -> None:
    """It learns their height, which begins at 1 / sqrt(C)."""
    from x_transformers.x_transformers import ScaledSinusoidalEmbedding

    theirs = ScaledSinusoidalEmbedding(C)
    meet.agrees("sinusoidal", "x-transformers", theirs(torch.zeros(1, T, C)) / theirs.scale, ours(), loop(), atol=5e-5)


def test_waves_are_those_of_marian(meet) -> None:
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    theirs = MarianSinusoidalPositionalEmbedding(T, C).create_weight()
    meet.agrees("sinusoidal", "transformers Marian", theirs, ours(), loop())

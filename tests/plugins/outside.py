"""What a user has: a suite, a file of encodings, a file of backends, and an installed package."""

from pathlib import Path

import pytest

from grape_bench import cli

SUITE = """
title: Tiny
baseline: none
processes: 1
encodings: [none, {more}rope]
cost:
  - {{lengths: [8], heads: [2], head_dim: [8], metrics: [forward_ms]}}
  - {{lengths: [8], heads: [2], head_dim: [8], metrics: [peak_mib], encodings: [rope], backends: [eager]}}
"""
ENCODINGS = '''
import torch
from torch import nn

from grape_bench.bias import Toeplitz
from grape_bench.encodings import At, Encoding
from grape_bench.encodings.rope import Rope as Turning


class Mine(Encoding):
    """Give near keys a bonus.

    Source: a test.
    """

    laws = ("relative", "reflection")

    def __init__(self, site, *, reach: int = 4):
        super().__init__()
        self.reach = reach
        self.bonus = nn.Parameter(torch.zeros(site.heads))

    def bias(self, q, features, at):
        return Toeplitz(self._values, [self.learned().to(q.dtype)], at.q_pos, at.k_pos, uniform=at.uniform)

    def learned(self):
        return self.bonus

    def _values(self, distance, bonus):
        return bonus.reshape(-1, *[1] * distance.dim()) * (distance.abs() <= self.reach)


class Detached(Mine):
    """Lose the gradient."""

    def learned(self):
        return self.bonus.detach()


class Liar(Mine):
    """Declare to be relative, and scale queries by their positions."""

    def rotate(self, q, k, features, at):
        return q * (1 + at.q_pos[:, None] / 100), k


class Slow(Turning):
    """Turn slowly."""

    version = 3
'''
BACKENDS = '''
from grape_bench.backends import Backend
from grape_bench.backends.sdpa import Sdpa


class Kernel(Sdpa):
    """Do as torch does."""


class Wrong(Sdpa):
    """Forget the scale."""

    def attend(self, q, k, v, bias, mask, *, scale=None):
        return super().attend(q, k, v, bias, mask, scale=1.0)


class Odd(Backend):
    def __init__(self, blocks):
        self.blocks = blocks
'''
TRAP = "from pathlib import Path\nPath('executed').touch()\n"


def write(folder: Path, more: str = "") -> None:
    (folder / "tiny.yaml").write_text(SUITE.format(more=more))
    (folder / "mine.py").write_text(ENCODINGS)
    (folder / "kernel.py").write_text(BACKENDS)


def install(folder: Path, text: str = ENCODINGS, points: str = "nearby = shop.shelf.near:Mine") -> None:
    """A package with an entry point, as pip would leave it."""
    module = folder / "shop" / "shelf" / "near.py"
    module.parent.mkdir(parents=True)
    for package in (module.parent, module.parents[1]):
        (package / "__init__.py").write_text("")
    module.write_text(text)
    facts = folder / "shop-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[grape_bench.encodings]\n{points}\n")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(words)
    out, err = capsys.readouterr()
    return code, out, err

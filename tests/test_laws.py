"""Laws are measured, and what breaks one is found: each law has an encoding that breaks it alone."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from grape_bench import laws
from grape_bench.bias import LowRank, Sum, Toeplitz
from grape_bench.encodings import At, Encoding, Site
from grape_bench.probe import Probe

DATA = Path(__file__).parent / "data"


class Given(Probe):
    """A probe of a class that is in no registry."""

    def __init__(self, kind: type[Encoding]):
        self.kind = kind
        super().__init__("given")

    def _make(self, site: Site) -> Encoding:
        return self.kind(site).double()  # type: ignore[call-arg]


class Sited(Encoding):
    def __init__(self, site: Site):
        super().__init__()
        self.site = site


class Scaled(Sited):
    """G(n) = 2^(n / 100): a homomorphism that keeps no norm."""

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self._scale(q, at.q_pos), self._scale(k, -at.k_pos)

    def _scale(self, x: Tensor, positions: Tensor) -> Tensor:
        return (x * 2 ** (positions[:, None].double() / 100)).to(x.dtype)


class Overflowing(Sited):
    """No number at all beyond position 500."""

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return q.masked_fill(at.q_pos[:, None] > 500, torch.nan), k


class Stalling(Sited):
    """Keys, and they alone, are no numbers from position 40 on."""

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return q, k.masked_fill(at.k_pos[:, None] >= 40, torch.nan)


class Reflected(Sited):
    """G(n) = diag(1, .., -1) at odd places: isometric, and a representation of Z mod 2."""

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self._flip(q, at.q_pos), self._flip(k, at.k_pos)

    def _flip(self, x: Tensor, positions: Tensor) -> Tensor:
        sign = torch.where(positions % 2 == 1, -1.0, 1.0).to(x)[:, None]
        return torch.cat((x[..., :-1], sign * x[..., -1:]), dim=-1)


class Drifting(Sited):
    """Turns by the square of the position: isometric, with G(0) = 1, and no homomorphism."""

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self._turn(q, at.q_pos), self._turn(k, at.k_pos)

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        angle = (positions.double() ** 2 / 50)[:, None]
        first, second = x[..., :1], x[..., 1:2]
        turned = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
        return torch.cat((*turned, x[..., 2:]), dim=-1).to(x.dtype)


class Far(Sited):
    """A bias of the distance's logarithm: relative, but no path adds up to it."""

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Toeplitz:
        def kernel(distance: Tensor) -> Tensor:
            return -(1 + distance.abs().double()).log().expand(self.site.heads, *distance.shape)

        return Toeplitz(kernel, [], at.q_pos, at.k_pos, uniform=at.uniform)


class Leaking(Sited):
    """Its bias sees the mean of all layer inputs, those of later tokens included."""

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> LowRank:
        whole = at.x.mean(dim=(1, 2))[:, None, None, None]
        v = torch.arange(at.k_pos.shape[-1], dtype=q.dtype)[:, None] * whole
        return LowRank(torch.ones(1, self.site.heads, at.q_pos.shape[-1], 1, dtype=q.dtype), v)


class Counting(Sited):
    """Rebuilds positions from the length, as an encoding that forgets the offset of its cache does."""

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return tuple(one * (1 + torch.arange(one.shape[-2]).to(one)[:, None] / 50) for one in (q, k))  # type: ignore[return-value]


class Rounding(Sited):
    """Positions in the model's own number format."""

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> LowRank:
        v = (at.k_pos.to(q.dtype) % 64)[None, None, :, None]
        return LowRank(torch.ones(1, self.site.heads, at.q_pos.shape[-1], 1, dtype=v.dtype), v)


class Mixing(Sited):
    """A head sees the queries of all heads."""

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return q + q.mean(dim=1, keepdim=True), k


class Crossing(Sited):
    """A sequence sees the queries of all sequences."""

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return q + q.mean(dim=0, keepdim=True), k


class Lopsided(Sited):
    """A lift that is not its tile."""

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> LowRank:
        class Wrong(LowRank):
            def lift(self) -> tuple[Tensor, Tensor]:
                return self.u, 2 * self.v

        i, j = at.centred(q.dtype)
        return Wrong(torch.ones(1, self.site.heads, i.shape[2], 1, dtype=q.dtype), j)


@pytest.fixture
def mixed_rotation() -> type[Encoding]:
    spec = importlib.util.spec_from_file_location("mixed_rotation", DATA / "mixed_rotation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MixedRotation  # type: ignore[no-any-return]


def held(kind: type[Encoding]) -> dict[str, bool | None]:
    """Whether each law holds; None where it does not apply."""
    probe, found = Given(kind), dict[str, bool | None]()
    for law in (*laws.DECLARED, *laws.UNIVERSAL):
        residual = law(probe)
        found[law.__name__] = None if residual is None else residual < 1e-8
    return found


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        (Scaled, {"isometric", "reflection"}),
        (Overflowing, {"relative"}),
        (
            Stalling,
            {"relative", "inverse", "homomorphism", "isometric", "reflection", "prefix", "streaming"},
        ),
        (Reflected, set()),
        (Drifting, {"relative", "inverse", "homomorphism"}),
        (Far, {"unipotent", "path"}),
        (Leaking, {"unipotent", "path", "causality", "prefix", "streaming"}),
        (Counting, {"streaming"}),
        (Rounding, {"unipotent", "path", "dtype"}),
        (Mixing, {"heads"}),
        (Crossing, {"batch"}),
        (Lopsided, {"lift"}),
    ],
)
@torch.no_grad()
def test_a_law_that_is_broken_is_found(kind: type[Encoding], broken: set[str]) -> None:
    found = held(kind)
    universal = {law.__name__ for law in laws.UNIVERSAL} | broken
    assert {law for law in broken if found[law] is not False} == set()
    assert {law for law, holds in found.items() if holds is False and law in universal} == broken


@torch.no_grad()
def test_a_lift_inside_a_sum_of_sums_is_measured() -> None:
    """`transformer_xl` is a sum itself, so its members lie two deep in any composition with another bias."""

    class Nested(Lopsided):
        def bias(self, q: Tensor, features: Tensor | None, at: At) -> Sum:
            return Sum([Sum([super().bias(q, features, at)])])

    assert held(Nested)["lift"] is False


@torch.no_grad()
def test_the_printed_rotation_is_rejected_with_its_published_residuals(mixed_rotation: type[Encoding]) -> None:
    probe = Given(mixed_rotation)
    published = {laws.isometric: 0.999, laws.homomorphism: 1.998, laws.relative: 1.930}
    assert {law.__name__: law(probe) for law in published} == {
        law.__name__: pytest.approx(value, abs=6e-4) for law, value in published.items()
    }


@torch.no_grad()
def test_the_maps_that_are_read_off_are_the_golden_ones(mixed_rotation: type[Encoding]) -> None:
    golden: Any = np.load(DATA / "golden" / "blog_residuals_d8.npz")
    q, k, content = Given(mixed_rotation).turns(0, 65)
    assert not content
    for g in (*q, *k):
        torch.testing.assert_close(g, torch.from_numpy(golden["M"]), rtol=0, atol=1e-12)
    assert laws.isometric(Given(mixed_rotation)) == pytest.approx(golden["orth_residual_max"].max(), abs=1e-12)

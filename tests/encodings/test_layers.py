"""Layers against schedules written out layer by layer."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.encodings import At, Encoding, Site, build_layers
from grape_bench.errors import Unsupported

SITE = Site(16, 2, 2, 8, 8, 64, layers=36, causal=True)


def outputs(encoding: Encoding, positions: Tensor) -> Tensor:
    q, k, v = torch.randn(3, 1, 2, 9, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = torch.zeros(1, 9, 16, dtype=torch.float64)
    return attend(encoding, Eager(), (q, k, v), At(x, positions, positions, uniform=False), Mask(causal=True))


def changed(text: str, one: Tensor, other: Tensor) -> list[int]:
    """The layers whose outputs differ between two sets of positions."""
    made = build_layers(text, SITE)
    return [n for n, layer in enumerate(made) if (outputs(layer, one) - outputs(layer, other)).abs().max() > 1e-6]


def test_smollm3_has_no_positions_in_every_fourth_of_36_layers() -> None:
    """Layers 3, 7, .. 35 alone; positions moved apart there change nothing."""
    without = [3, 7, 11, 15, 19, 23, 27, 31, 35]
    seeing = changed("layers(rope, skip_every=4)", torch.arange(9), 3 * torch.arange(9))
    assert seeing == [n for n in range(36) if n not in without]


@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_inverted_it_acts_on_the_other_layers_alone(n: int) -> None:
    positions = torch.arange(9), 3 * torch.arange(9)
    seeing = changed(f"layers(rope, skip_every={n}, invert=True)", *positions)
    assert seeing == list(range(n - 1, 36, n))
    assert sorted(seeing + changed(f"layers(rope, skip_every={n})", *positions)) == list(range(36))


def test_a_window_goes_with_the_rotation_and_the_others_look_afar() -> None:
    made = build_layers("layers(rope + window(tokens=3), skip_every=4)", SITE)
    q, at = torch.zeros(1, 2, 9, 8), torch.arange(9)
    for n, layer in enumerate(made):
        bias = layer.bias(q, None, At(q, at, at, uniform=True))
        if n % 4 == 3:
            assert bias is None
        else:
            assert bias is not None
            assert bias.tile()[0, 0, 8].isfinite().tolist() == [False] * 6 + [True] * 3


def test_two_schedules_add_up_to_one_encoding_for_each_layer() -> None:
    made = build_layers("layers(rope, skip_every=4) + layers(alibi, skip_every=4, invert=True)", SITE)
    q, at = torch.ones(1, 2, 9, 8), torch.arange(9)
    for n, layer in enumerate(made):
        call = At(q, at, at, uniform=True)
        turned, bias = layer.rotate(q, q, None, call)[0], layer.bias(q, None, call)
        assert torch.equal(turned, q) == (n % 4 == 3)
        assert (bias is not None) == (n % 4 == 3)


def test_what_a_layer_does_without_has_no_parameters_there() -> None:
    made = build_layers("layers(clamp(window=2), skip_every=2)", replace(SITE, layers=4))
    assert [sum(one.numel() for one in layer.parameters()) for layer in made] == [10, 0, 10, 0]
    assert len({id(layer) for layer in made}) == 4


def test_laws_and_facts_are_those_of_what_acts() -> None:
    one, other = build_layers("layers(transformer_xl, skip_every=2)", replace(SITE, layers=2))
    assert (one.features, other.features) == (1, 0)
    assert (one.laws, other.laws) == (("relative",), ("relative", "reflection"))


def test_vectors_added_to_the_tokens_go_by_the_first_layer() -> None:
    x = torch.zeros(1, 9, 16)
    for text, added in (("layers(sinusoidal)", True), ("layers(sinusoidal, invert=True)", False)):
        first = build_layers(text, SITE)[0]
        assert bool(first.embed(x, torch.arange(9)).any()) == added


@pytest.mark.parametrize("n", [1, 0, -4])
def test_a_schedule_that_leaves_no_layer_is_unsupported(n: int) -> None:
    with pytest.raises(Unsupported, match="skip_every"):
        build_layers(f"layers(rope, skip_every={n})", SITE)

"""The one small transformer: equal starts, and laws that hold through all of it."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from grape_bench.attention import Cache
from grape_bench.backends.eager import Eager
from grape_bench.cell import ModelOptions
from grape_bench.encodings import Composition, Encoding
from grape_bench.errors import Unsupported
from grape_bench.model import Transformer, named_generator
from grape_bench.operation import scramble
from grape_bench.registry import Registry

ENCODINGS = [name for name, one in Registry("encodings").items() if not one.wraps and one.facts["domain"] == "both"]
SUMS = ["rope + clamp", "learned + rope + t5 + alibi"]
OPTIONS = ModelOptions(width=16, layers=3, heads=4)


def model(encoding: str, options: ModelOptions = OPTIONS, *, seed: int = 0, start: str = "standard") -> Transformer:
    made = Transformer(options, encoding, Eager(), vocabulary=11, answers=5, kinds=2, lengths=(16, 32))
    made.reset(seed, start=start)
    return made


def shared(one: Transformer) -> dict[str, Tensor]:
    """All that is not the encoding's."""
    return {name: value for name, value in one.state_dict().items() if ".encoding." not in name}


def encodings(one: Transformer) -> Iterator[Encoding]:
    for layer in one.layers:
        encoding = layer.attention.encoding  # type: ignore[union-attr]
        assert isinstance(encoding, Encoding)
        yield encoding


def tokens(count: int = 2, length: int = 9) -> Tensor:
    return torch.randint(11, (count, length), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("encoding", ENCODINGS + SUMS)
def test_shared_weights_start_equal_for_every_encoding(encoding: str) -> None:
    expected, got = shared(model("none", seed=4)), shared(model(encoding, seed=4))
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(got[name], value), name


def test_the_global_generator_has_no_part_in_the_start() -> None:
    torch.manual_seed(1)
    one = shared(model("none"))
    torch.manual_seed(2)
    other = shared(model("none"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_another_seed_gives_another_start() -> None:
    one, other = shared(model("none", seed=0)), shared(model("none", seed=1))
    drawn = [name for name, value in one.items() if value.unique().numel() > 2]
    assert len(drawn) > 20
    assert not any(torch.equal(one[name], other[name]) for name in drawn)


def test_layers_start_apart_with_the_spread_of_the_recipe() -> None:
    wide = model("none", ModelOptions(width=128, layers=2, heads=4))
    weights = {name: value for name, value in wide.state_dict().items() if value.dim() == 2}
    assert not torch.equal(weights["layers.0.attention.query.weight"], weights["layers.1.attention.query.weight"])
    for name, std in {
        "layers.0.attention.query.weight": 128**-0.5,
        "layers.0.up.weight": 128**-0.5,
        "layers.0.attention.out.weight": 128**-0.5 / 2,  # residual outputs: over the root of 2 x 2 layers
        "layers.1.down.weight": 512**-0.5 / 2,
        "tokens.weight": 0.3,
    }.items():
        assert weights[name].std().item() == pytest.approx(std, rel=0.05), name


@pytest.mark.parametrize("kv_heads", [None, 2])
def test_a_tied_start_copies_queries_to_keys(kv_heads: int | None) -> None:
    options = OPTIONS.model_copy(update={"kv_heads": kv_heads})
    tied, plain = shared(model("rope", options, start="tied")), shared(model("rope", options))
    for name, value in tied.items():
        if "attention.key" in name:
            assert torch.equal(value, tied[name.replace("key", "query")][: len(value)])
        else:
            assert torch.equal(value, plain[name]), name


def test_a_shared_encoding_is_one_instance_in_all_layers() -> None:
    first, second, third = encodings(model("t5"))
    assert first is second is third


def test_in_a_composition_only_shared_parts_are_one_instance() -> None:
    first, second, _ = encodings(model("rope + t5"))
    assert isinstance(first, Composition)
    assert isinstance(second, Composition)
    assert first is not second
    assert first.parts[0] is not second.parts[0], "RoPE is made for each layer"
    assert first.parts[1] is second.parts[1], "T5's table serves all layers"


def test_a_shared_table_is_counted_once() -> None:
    none, t5 = (sum(one.numel() for one in model(name).parameters()) for name in ("none", "t5"))
    assert t5 - none == 4 * 32


@pytest.mark.parametrize("encoding", ["none", "rope + t5", "alibi", "learned"])
@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_rows_of_the_tail_alone_equal_those_of_the_whole(encoding: str, causal: bool) -> None:
    one = model(encoding, OPTIONS.model_copy(update={"causal": causal})).double()
    whole = one(tokens())
    for tail in (1, 4, 9):
        torch.testing.assert_close(one(tokens(), tail=tail), whole[:, -tail:], rtol=0, atol=1e-12)


@torch.no_grad()
def test_kinds_are_added_to_the_tail() -> None:
    one, given = model("none").double(), tokens()
    plain = one(given, tail=2, kinds=torch.tensor([0, 0]))
    other = one(given, tail=2, kinds=torch.tensor([0, 1]))
    one.segments.weight[1] = one.segments.weight[0]  # type: ignore[index,union-attr,operator]
    torch.testing.assert_close(one(given, tail=2, kinds=torch.tensor([0, 1])), plain, rtol=0, atol=0)
    assert (other - plain).abs().max() > 1e-3


@pytest.mark.parametrize("encoding", ["rope", "rope + t5", "fourier", "clamp"])
@pytest.mark.parametrize("qk_norm", [False, True])
@torch.no_grad()
def test_a_shift_of_all_positions_changes_nothing_for_a_relative_encoding(encoding: str, qk_norm: bool) -> None:
    """Norms stand before the rotation: after it, they would break the law."""
    one = model(encoding, OPTIONS.model_copy(update={"qk_norm": qk_norm})).double()
    for norm in (one.layers[0].attention.norm_q, one.layers[0].attention.norm_k):  # type: ignore[union-attr]
        for weight in norm.parameters():  # type: ignore[union-attr,operator]
            weight.copy_(torch.linspace(0.5, 2.0, len(weight)))
    here, there = torch.arange(9), torch.arange(9) + 1000
    torch.testing.assert_close(one(tokens(), positions=there), one(tokens(), positions=here), rtol=0, atol=1e-9)


@torch.no_grad()
def test_a_model_without_positions_sees_a_bag() -> None:
    one, given = model("none").double(), tokens()
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    shuffled = torch.cat((given[:, :8][:, order], given[:, 8:]), dim=1)
    torch.testing.assert_close(one(shuffled, tail=1), one(given, tail=1), rtol=0, atol=1e-12)
    rope = model("rope").double()
    assert (rope(shuffled, tail=1) - rope(given, tail=1)).abs().max() > 1e-4


@torch.no_grad()
def test_behind_a_cache_positions_go_on_by_themselves() -> None:
    one = model("rope + clamp + learned", OPTIONS.model_copy(update={"causal": True})).double()
    for encoding in encodings(one):
        scramble(encoding)
    caches = [Cache(9) for _ in range(3)]
    rows = [one(tokens()[:, start:stop], caches=caches) for start, stop in ((0, 5), (5, 6), (6, 9))]
    torch.testing.assert_close(torch.cat(rows, dim=1), one(tokens()), rtol=0, atol=1e-9)


@torch.no_grad()
def test_two_prompts_share_no_cache() -> None:
    one, given = model("alibi", OPTIONS.model_copy(update={"causal": True})).double(), tokens()
    expected = one(given)
    for _ in range(2):
        torch.testing.assert_close(one(given, caches=[Cache(9) for _ in range(3)]), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"width": 18}, "heads"), ({"kv_heads": 3}, "kv_heads"), ({"width": 4, "heads": 4}, "even number up to head_dim")],
)
def test_widths_that_do_not_divide_are_unsupported(options: dict[str, int], reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        model("rope", OPTIONS.model_copy(update=options))


def test_a_named_generator_depends_on_seed_and_name() -> None:
    draws = {named_generator(seed, name).initial_seed() for seed in (0, 1) for name in ("a", "b")}
    assert len(draws) == 4
    assert named_generator(1, "a").initial_seed() == named_generator(1, "a").initial_seed()

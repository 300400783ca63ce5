"""Randomized against the subset written out: the lowest of one ranking, in order."""

import pytest
import torch
from torch import Tensor

from grape_bench.backends.eager import Eager
from grape_bench.cell import ModelOptions
from grape_bench.encodings import At, Site, build, build_layers
from grape_bench.encodings.randomized import Randomized
from grape_bench.errors import Unsupported
from grape_bench.model import Transformer

SITE = Site(16, 2, 2, 8, 8, 12, causal=True)


def randomized(inner: str = "rope", options: str = "") -> Randomized:
    encoding = build(f"randomized({inner}{options})", SITE)
    assert isinstance(encoding, Randomized)
    return encoding


def subset(encoding: Randomized, count: int) -> list[int]:
    """The places of `count` tokens, by sorting."""
    ranks = encoding.ranks.tolist()
    return sorted(sorted(range(len(ranks)), key=ranks.__getitem__)[:count])


def places(encoding: Randomized, q_pos: Tensor, k_pos: Tensor) -> tuple[Tensor, Tensor]:
    moved = encoding.moved(At(torch.zeros(1, 1, 16), q_pos, k_pos, uniform=True))
    assert not moved.uniform
    return moved.q_pos, moved.k_pos


@pytest.mark.parametrize("count", [1, 5, 12, 48])
def test_a_sequence_takes_a_sorted_subset_without_repetition(count: int) -> None:
    encoding = randomized()
    q, k = places(encoding, torch.arange(count), torch.arange(count))
    assert q.tolist() == k.tolist() == subset(encoding, count)
    assert len(set(k.tolist())) == count
    assert set(k.tolist()) <= set(range(4 * 12))


def test_positions_are_indices_into_the_subset() -> None:
    encoding = randomized()
    q, k = places(encoding, torch.tensor([6, 2]), torch.tensor([0, 6, 3, 3]))
    whole = subset(encoding, 7)
    assert q.tolist() == [whole[6], whole[2]]
    assert k.tolist() == [whole[0], whole[6], whole[3], whole[3]]


def test_positions_left_of_the_origin_mirror_those_right_of_it() -> None:
    encoding = randomized()
    _, k = places(encoding, torch.tensor([0]), torch.arange(-6, 4))
    whole = subset(encoding, 7)
    assert k.tolist() == [-whole[n] for n in range(6, 0, -1)] + whole[:4]
    assert (k.diff() > 0).all()


def test_sequences_of_a_batch_have_the_subset_of_their_own_length() -> None:
    encoding, at = randomized(), torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])  # three tokens behind padding
    q, k = places(encoding, at[:, -1:], at)
    assert k[0].tolist() == [subset(encoding, 3)[n] for n in at[0].tolist()]
    assert k[1].tolist() == subset(encoding, 5)
    assert q.flatten().tolist() == [subset(encoding, 3)[2], subset(encoding, 5)[4]]


def test_the_wrapped_encoding_sees_the_places_through_every_hook() -> None:
    generator = torch.Generator().manual_seed(1)
    x, q, k = torch.randn(1, 6, 16, generator=generator), *torch.randn(2, 1, 2, 6, 8, generator=generator)
    at = torch.arange(6)
    for inner in ("rope", "alibi", "sinusoidal"):
        encoding, plain = randomized(inner), build(inner, SITE)
        there = torch.tensor(subset(encoding, 6))
        torch.testing.assert_close(encoding.embed(x, at), plain.embed(x, there))
        got, expected = encoding.encode(q, k, At(x, at, at, True)), plain.encode(q, k, At(x, there, there, False))
        for one, other in zip(got[:2], expected[:2], strict=True):
            torch.testing.assert_close(one, other)
        assert (got[2] is None) == (expected[2] is None)
        if got[2] is not None and expected[2] is not None:
            torch.testing.assert_close(got[2].tile(), expected[2].tile())


def test_every_place_is_as_likely_as_any_other() -> None:
    encoding, counts = randomized(), torch.zeros(48)
    for seed in range(2000):
        encoding.redraw(torch.Generator().manual_seed(seed))
        counts[places(encoding, torch.arange(12), torch.arange(12))[1]] += 1
    assert counts.sum() == 2000 * 12
    assert counts.min() > 500 - 5 * 20  # five deviations of a binomial, 2000 times a quarter
    assert counts.max() < 500 + 5 * 20


def test_all_layers_agree_before_and_after_a_redraw() -> None:
    options = ModelOptions(width=16, layers=3, heads=2, causal=True)
    model = Transformer(options, "randomized(rope)", Eager(), vocabulary=7, answers=3, lengths=(8, 12))
    model.reset(0)
    ranks = [one.ranks.tolist() for one in model.modules() if isinstance(one, Randomized)]
    assert len(ranks) == 3
    assert ranks == [ranks[0]] * 3
    drawn = {}
    for moment in ("0", "1", "test", "0 "):
        model.redraw(5, moment.strip())
        after = [one.ranks.tolist() for one in model.modules() if isinstance(one, Randomized)]
        assert after == [after[0]] * 3
        drawn[moment] = after[0]
    assert drawn["0"] == drawn["0 "] != drawn["1"] != drawn["test"]


def test_a_table_of_positions_does_not_outlive_a_redraw() -> None:
    encoding, q = randomized(), torch.randn(1, 2, 6, 8, generator=torch.Generator().manual_seed(1))
    call = At(q, torch.arange(6), torch.arange(6), uniform=True)
    before = encoding.rotate(q, q, None, call)[0]
    encoding.redraw(torch.Generator().manual_seed(3))
    after = encoding.rotate(q, q, None, call)[0]
    plain, there = build("rope", SITE), torch.tensor(subset(encoding, 6))
    torch.testing.assert_close(after, plain.rotate(q, q, None, At(q, there, there, uniform=False))[0])
    assert (after - before).abs().max() > 0.1


def test_layers_share_an_instance_where_the_wrapped_encoding_does() -> None:
    three = Site(16, 2, 2, 8, 8, 12, layers=3)
    assert len({id(one) for one in build_layers("randomized(t5)", three)}) == 1
    assert len({id(one) for one in build_layers("randomized(rope)", three)}) == 3


def test_it_cannot_decode_and_says_why() -> None:
    encoding = randomized()
    assert "places" in encoding.not_streaming
    assert set(encoding.breaks) == {"prefix", "streaming"}
    assert encoding.laws == ("isometric",)


def test_a_wrapper_breaks_its_own_laws_and_those_that_the_wrapped_encoding_breaks() -> None:
    nested = build("randomized(dape(alibi))", SITE)
    assert nested.breaks == ("heads", "prefix", "streaming")
    assert "places" in nested.not_streaming
    assert "shorter text" in build("layers(dynamic_ntk)", SITE).not_streaming


def test_it_takes_whole_positions_within_its_places_alone() -> None:
    encoding = randomized()
    with pytest.raises(Unsupported, match="whole"):
        places(encoding, torch.tensor([0.5]), torch.tensor([0.5]))
    with pytest.raises(IndexError):
        places(encoding, torch.tensor([48]), torch.arange(2))


def test_fewer_places_than_tokens_are_unsupported() -> None:
    assert len(randomized(options=", places=12").ranks) == 12
    with pytest.raises(Unsupported, match="too few"):
        randomized(options=", places=11")

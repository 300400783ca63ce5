"""CAPE against its formula, token by token."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.backends.eager import Eager
from grape_bench.cell import ModelOptions
from grape_bench.encodings import At, Site, build
from grape_bench.encodings.cape import Cape
from grape_bench.errors import Unsupported
from grape_bench.model import Transformer

SITE = Site(16, 2, 2, 8, 8, 12)


def cape(inner: str = "rope", options: str = "", *, seed: int | None = 0) -> Cape:
    encoding = build(f"cape({inner}{options})", SITE)
    assert isinstance(encoding, Cape)
    if seed is not None:
        encoding.redraw(torch.Generator().manual_seed(seed))
    return encoding


def moved(encoding: Cape, q_pos: Tensor, k_pos: Tensor) -> tuple[Tensor, Tensor]:
    there = encoding.moved(At(torch.zeros(1, 1, 16, dtype=torch.float64), q_pos, k_pos, uniform=True))
    return there.q_pos, there.k_pos


def test_positions_are_shifted_jittered_and_stretched() -> None:
    encoding = cape()
    q, k = moved(encoding, torch.arange(4) + 8, torch.arange(12))
    for n in range(12):
        expected = (n + encoding.shift + encoding.jitter[n].item()) * encoding.factor
        assert k[n].item() == pytest.approx(expected, abs=1e-9)
    assert q.tolist() == k[-4:].tolist(), "queries are the last of the keys, and move with them"


def test_draws_fill_their_ranges() -> None:
    encoding, drawn = cape(options=", shift=3, local=0.25, scale=2"), []
    for seed in range(300):
        encoding.redraw(torch.Generator().manual_seed(seed))
        drawn.append((torch.tensor(encoding.shift), torch.tensor(math.log(encoding.factor)), encoding.jitter.clone()))
    for values, bound in zip(zip(*drawn, strict=True), (3.0, math.log(2), 0.25), strict=True):
        made = torch.stack(values)
        assert bound * 0.95 < made.abs().max().item() <= bound
        assert made.mean().item() == pytest.approx(0.0, abs=0.12 * bound)
        assert made.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_tokens_keep_their_order_up_to_half_a_token() -> None:
    encoding = cape()
    for seed in range(50):
        encoding.redraw(torch.Generator().manual_seed(seed))
        _, k = moved(encoding, torch.arange(12), torch.arange(12))
        assert (k.diff() > 0).all()


def test_a_test_sees_positions_as_they_are() -> None:
    encoding = cape().eval()
    at = At(torch.zeros(1, 1, 16), torch.arange(6), torch.arange(6), uniform=True)
    assert encoding.moved(at) is at


def test_before_the_first_draw_positions_are_as_they_are() -> None:
    _, k = moved(cape(seed=None), torch.arange(12), torch.arange(12))
    assert k.tolist() == list(range(12))


def test_the_wrapped_encoding_sees_the_new_positions_through_every_hook() -> None:
    generator = torch.Generator().manual_seed(1)
    x, q, k = torch.randn(1, 6, 16, generator=generator), *torch.randn(2, 1, 2, 6, 8, generator=generator)
    at = torch.arange(6)
    for inner in ("rope", "kerple", "sinusoidal"):
        encoding, plain = cape(inner), build(inner, SITE)
        there = (at + encoding.shift + encoding.jitter[:6]) * encoding.factor
        torch.testing.assert_close(encoding.embed(x, at), plain.embed(x, there))
        got, expected = encoding.encode(q, k, At(x, at, at, True)), plain.encode(q, k, At(x, there, there, False))
        for one, other in zip(got[:2], expected[:2], strict=True):
            torch.testing.assert_close(one, other)
        if got[2] is not None and expected[2] is not None:
            torch.testing.assert_close(got[2].tile(), expected[2].tile())


def test_all_layers_and_sequences_of_a_step_move_alike() -> None:
    options = ModelOptions(width=16, layers=3, heads=2)
    model = Transformer(options, "cape(rope)", Eager(), vocabulary=7, answers=3, lengths=(8, 12))
    model.reset(0)
    for moment in ("0", "1"):
        model.redraw(5, moment)
        states = [(one.shift, one.factor, one.jitter.tolist()) for one in model.modules() if isinstance(one, Cape)]
        assert len(states) == 3
        assert states == [states[0]] * 3
    tokens = torch.randint(7, (1, 8), generator=torch.Generator().manual_seed(0)).expand(2, -1)
    both = model.train()(tokens)
    torch.testing.assert_close(both[0], both[1])


def test_training_feels_it_and_a_test_does_not() -> None:
    options = ModelOptions(width=16, layers=1, heads=2)
    model = Transformer(options, "cape(sinusoidal)", Eager(), vocabulary=7, answers=3, lengths=(8, 12))
    model.reset(0)
    tokens = torch.arange(7)[None]
    outs = []
    for moment, mode in (("0", True), ("1", True), ("0", False), ("1", False)):
        model.redraw(5, moment)
        outs.append(model.train(mode)(tokens))
    assert (outs[0] - outs[1]).abs().max() > 1e-3
    torch.testing.assert_close(outs[2], outs[3], rtol=0, atol=0)


@pytest.mark.parametrize("inner", ["learned", "randomized(rope)"])
def test_an_encoding_of_whole_positions_is_unsupported(inner: str) -> None:
    with pytest.raises(Unsupported, match="real positions"):
        cape(inner)


@pytest.mark.parametrize("options", [", shift=-1", ", local=-0.1", ", scale=0.5"])
def test_ranges_that_cannot_be_are_unsupported(options: str) -> None:
    with pytest.raises(Unsupported, match="cape"):
        cape(options=options)

"""What every encoding promises in a whole model: decoding, padding, packed documents, and no look ahead."""

import pytest
import torch
from contract import REGISTRY, SITE, every, scrambled
from torch import Tensor

from grape_bench.attention import Cache
from grape_bench.backends.eager import Eager
from grape_bench.cell import ModelOptions
from grape_bench.encodings import build
from grape_bench.model import Transformer


def model(name: str, *, causal: bool) -> Transformer:
    options = ModelOptions(width=16, layers=2, heads=4, kv_heads=2, causal=causal)
    made = Transformer(options, name, Eager(), vocabulary=11, answers=5, lengths=(16, 1100))
    made.reset(0)
    scrambled(made).double().eval()
    return made


def streaming(name: str) -> Transformer:
    """A decoder that decodes."""
    found = model(name, causal=True)
    if reason := build(name, SITE).not_streaming:
        pytest.skip(reason)
    return found


def tokens(count: int, length: int) -> Tensor:
    return torch.randint(11, (count, length), generator=torch.Generator().manual_seed(3))


@every
@pytest.mark.parametrize("steps", [[1] * 9, [5, 1, 3]])
@torch.no_grad()
def test_tokens_through_a_cache_equal_all_at_once(name: str, steps: list[int]) -> None:
    decoder, given = streaming(name), tokens(2, 9)
    caches, rows, start = [Cache(9), Cache(9)], [], 0
    for count in steps:
        piece, at = given[:, start : start + count], torch.arange(start, start + count)
        rows.append(decoder(piece, caches=caches, positions=at))
        start += count
    torch.testing.assert_close(torch.cat(rows, dim=1), decoder(given), rtol=0, atol=1e-9)


@every
@torch.no_grad()
def test_decoding_uses_the_true_positions_with_gaps(name: str) -> None:
    decoder, given = streaming(name), tokens(1, 5)
    at = torch.tensor([0, 3, 4, 40, 900])
    caches = [Cache(5), Cache(5)]
    rows = [decoder(given[:, i : i + 1], caches=caches, positions=at[i : i + 1]) for i in range(5)]
    whole = decoder(given, positions=at)
    torch.testing.assert_close(torch.cat(rows, dim=1), whole, rtol=0, atol=1e-9)
    torch.testing.assert_close(whole, decoder(given, positions=at[None]), rtol=0, atol=1e-9)


@every
@torch.no_grad()
def test_the_future_never_leaks(name: str) -> None:
    decoder, given = model(name, causal=True), tokens(2, 9)
    before = decoder(given)
    for cut in (1, 4, 8):
        changed = given.clone()
        changed[:, cut:] = (changed[:, cut:] + 1) % 11
        after = decoder(changed)
        torch.testing.assert_close(after[:, :cut], before[:, :cut], rtol=0, atol=1e-12)
        assert (after[:, cut:] - before[:, cut:]).abs().max() > 1e-3


@every
@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_padding_on_the_left_changes_nothing(name: str, causal: bool) -> None:
    """With positions counted from the first real token it changes no encoding, otherwise no relative one."""
    if REGISTRY[name.split("(")[0]].facts["domain"] == "causal" and not causal:
        pytest.skip("causal only")
    whole, given = model(name, causal=causal), tokens(2, 7)
    pads = (5, 2)
    padded, keys = torch.zeros(2, 12, dtype=torch.long), torch.zeros(2, 12, dtype=torch.bool)
    for b, pad in enumerate(pads):
        padded[b, pad : pad + 7], keys[b, pad : pad + 7] = given[b], True
    real = (keys.long().cumsum(dim=1) - 1).clamp(min=0)
    expected = whole(given)
    got = whole(padded, keys=keys, positions=real)
    unaware = whole(padded, keys=keys)
    for b, pad in enumerate(pads):
        torch.testing.assert_close(got[b, pad : pad + 7], expected[b], rtol=0, atol=1e-9)
        if "relative" in whole.layers[0].attention.encoding.laws:  # type: ignore[union-attr, operator]
            torch.testing.assert_close(unaware[b, pad : pad + 7], expected[b], rtol=0, atol=1e-9)


@every
@torch.no_grad()
def test_documents_packed_into_one_sequence_do_not_see_each_other(name: str) -> None:
    """Positions begin anew with each; what an encoding sums up on its way may run on."""
    whole = streaming(name)
    sizes, given = (4, 3, 5), tokens(1, 12)
    documents = torch.repeat_interleave(torch.arange(3), torch.tensor(sizes))[None]
    positions = torch.cat([torch.arange(size) for size in sizes])
    packed = whole(given, documents=documents, positions=positions)
    alone = [whole(piece) for piece in given.split(sizes, dim=1)]
    torch.testing.assert_close(packed, torch.cat(alone, dim=1), rtol=0, atol=1e-9)

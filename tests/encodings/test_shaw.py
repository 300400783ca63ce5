"""Shaw against products with a clipped look-up, one pair at a time."""

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.encodings import At, Site, build
from grape_bench.encodings.shaw import Shaw
from grape_bench.errors import Unsupported

B, H, D, W = 2, 4, 6, 3


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def shaw(options: str = f"window={W}", kv_heads: int = H) -> Shaw:
    encoding = build(f"shaw({options})", Site(H * D, H, kv_heads, D, 64, 64)).double()
    assert isinstance(encoding, Shaw)
    with torch.no_grad():
        encoding.table.copy_(draw(9, *encoding.table.shape))
    return encoding


def value(encoding: Shaw, q: Tensor, ahead: int, row: int = 0) -> float:
    """q . a[clip(j - i)] / sqrt(D), channel by channel."""
    place = max(-W, min(W, ahead)) + W
    return sum(q[c].item() * encoding.table[row, place, c].item() for c in range(D)) / D**0.5


@pytest.mark.parametrize("heads", ["shared", "own"])
def test_the_bias_is_the_product_with_the_vector_of_key_minus_query(heads: str) -> None:
    encoding, q = shaw(f"window={W}, heads={heads!r}"), draw(0, B, H, 9, D)
    for start in (0, 700):
        at = torch.arange(9) + start
        got = encoding.bias(q, None, At(q, at, at, uniform=True)).tile()
        for b in range(B):
            for h in range(H):
                for i in range(9):
                    for j in range(9):
                        expected = value(encoding, q[b, h, i], j - i, h if heads == "own" else 0)
                        assert got[b, h, i, j].item() == pytest.approx(expected, abs=1e-12)


def test_all_distances_beyond_the_window_share_a_vector_on_each_side() -> None:
    encoding, q = shaw(), draw(0, 1, H, 1, D)
    got = encoding.bias(q, None, At(q, torch.tensor([50]), torch.tensor([0, 46, 47, 48, 53, 54, 99]), False)).tile()
    past, coming = got[..., :3], got[..., 4:]
    torch.testing.assert_close(past, past[..., :1].expand_as(past), rtol=0, atol=0)
    torch.testing.assert_close(coming, coming[..., :1].expand_as(coming), rtol=0, atol=0)
    assert (got[..., 2] - got[..., 3]).abs().min() > 1e-3


def test_it_is_attention_to_keys_with_the_vector_added() -> None:
    """softmax(q (k + a) / sqrt(D)) v, with a sum of keys for each pair."""
    encoding, at = shaw(), torch.arange(7)
    q, k, v = draw(1, B, H, 7, D), draw(2, B, H, 7, D), draw(3, B, H, 7, D)
    got = attend(encoding, Eager(), (q, k, v), At(q, at, at, uniform=True), Mask())
    place = (at[None] - at[:, None]).clamp(-W, W) + W
    keys = k[:, :, None] + encoding.table[0][place]  # (B, H, T, S, D)
    chances = (torch.einsum("bhtd,bhtsd->bhts", q, keys) / D**0.5).softmax(dim=-1)
    torch.testing.assert_close(got, torch.einsum("bhts,bhsd->bhtd", chances, v), rtol=0, atol=1e-12)


def test_real_positions_take_the_nearest_whole_distance() -> None:
    encoding, q = shaw(), draw(0, 1, H, 1, D)
    at = At(q, torch.tensor([0.0]), torch.tensor([0.4, 1.6, -2.4]), uniform=False)
    got = encoding.bias(q, None, at).tile()[0, 1, 0]
    assert got.tolist() == pytest.approx([value(encoding, q[0, 1, 0], n) for n in (0, 2, -2)], abs=1e-12)


def test_rows_can_be_taken_in_any_slice() -> None:
    encoding, q, at = shaw(), draw(0, B, H, 9, D), torch.arange(9)
    bias = encoding.bias(q, None, At(q, at[None].expand(B, -1), at[None].expand(B, -1), uniform=False))
    whole = bias.tile()
    torch.testing.assert_close(bias.tile(slice(2, 5), slice(1, 8)), whole[:, :, 2:5, 1:8], rtol=0, atol=0)


def test_it_starts_as_no_bias_at_all_with_one_table_for_all_heads() -> None:
    encoding = build("shaw", Site(H * D, H, H, D, 64, 64))
    assert isinstance(encoding, Shaw)
    assert encoding.table.shape == (1, 33, D)
    assert not encoding.table.any()


def test_a_window_below_one_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="window"):
        build("shaw(window=0)", Site(H * D, H, H, D, 64, 64))

"""Dynamic NTK against published bases, and against what it must not promise."""

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported
from grape_bench.operation import AttentionOperation


def dynamic(size: int, options: str = "", *, train_length: int = 4096) -> Encoding:
    return build(f"dynamic_ntk({options})", Site(size, 1, 1, size, train_length, 64, causal=True))


def turned(encoding: Encoding, x: Tensor, keys: int) -> Tensor:
    """Queries (T, D) at positions 0 .. T-1 of a text of so many keys."""
    at = At(x, torch.arange(len(x)), torch.arange(keys), uniform=True)
    return encoding.rotate(x[None, None], torch.zeros(1, 1, keys, x.shape[-1]).to(x), None, at)[0][0, 0]


def speeds(encoding: Encoding, size: int, keys: int) -> list[float]:
    """Radians a token of each plane, read off where the first axis of each stands at position 1."""
    x = torch.zeros(2, size, dtype=torch.float64)
    x[:, ::2] = 1.0
    got = turned(encoding, x, keys)[1]
    return torch.atan2(got[1::2], got[::2]).tolist()


@pytest.mark.parametrize(
    ("options", "keys", "base"),
    [
        ("factor=4", 8192, 51293.78726815244),
        ("factor=1", 8192, 10_000 * 2 ** (128 / 126)),
        ("factor=1", 4096, 10_000),
        ("factor=4", 100, 10_000),
    ],
)
def test_the_base_grows_with_the_number_of_keys(options: str, keys: int, base: float) -> None:
    expected = [base ** (-2 * i / 128) for i in range(64)]
    assert speeds(dynamic(128, options), 128, keys) == pytest.approx(expected, rel=1e-11)


def test_the_original_length_can_be_stated() -> None:
    stated = speeds(dynamic(16, "original=16", train_length=999), 16, 24)
    assert stated == speeds(dynamic(16, train_length=16), 16, 24)
    assert stated == pytest.approx([(10_000 * 1.5 ** (16 / 14)) ** (-2 * i / 16) for i in range(8)], rel=1e-11)


def outputs(encoding: Encoding, count: int) -> Tensor:
    q, k, v = torch.randn(3, 1, 1, 24, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[
        ..., :count, :
    ]
    at = torch.arange(count)
    return attend(encoding, Eager(), (q, k, v), At(q[0], at, at, uniform=True), Mask(causal=True))


def test_a_text_beyond_the_training_length_says_nothing_of_its_prefix() -> None:
    """Its class says so, so that nothing takes cached keys for those of the longer text."""
    encoding = dynamic(8, train_length=16)
    whole = outputs(encoding, 24)
    assert (outputs(encoding, 20) - whole[:, :, :20]).abs().max() > 1e-2
    torch.testing.assert_close(outputs(encoding, 12), outputs(encoding, 16)[:, :, :12], rtol=0, atol=1e-12)
    assert encoding.breaks == ("prefix", "streaming")


def test_decoding_is_refused_with_the_reason() -> None:
    encoding, x = dynamic(8), torch.zeros(1, 4, 8)
    operation = AttentionOperation(encoding, Eager(), (x[None], x[None], x[None]), x, causal=True)
    with pytest.raises(Unsupported, match="base of a shorter text"):
        operation.decoder()


@pytest.mark.parametrize(("size", "options"), [(2, ""), (7, ""), (8, "factor=0"), (8, "original=0"), (8, "base=0")])
def test_impossible_options_are_unsupported(size: int, options: str) -> None:
    with pytest.raises(Unsupported):
        dynamic(size, options)

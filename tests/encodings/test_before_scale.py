"""Before scale against attention written out with the bias inside the scaling."""

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask, load
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

SITE = Site(24, 2, 2, 12, 8, 16, causal=True)
PLACES = torch.arange(9)


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def made(text: str) -> Encoding:
    encoding = build(text, SITE).double()
    with torch.no_grad():
        for one in encoding.parameters():
            one.copy_(draw(*one.shape))
    return encoding


def outputs(text: str, backend: str = "eager") -> Tensor:
    q, k, v = draw(3, 1, 2, 9, 12)
    at = At(draw(1, 9, 24), PLACES, PLACES, uniform=True)
    return attend(made(text), load(backend), (q, k, v), at, Mask(causal=True))


def test_the_bias_is_scaled_with_the_scores() -> None:
    q, k, v = draw(3, 1, 2, 9, 12)
    table = draw(2, 17)  # of distances from -8 to 8
    scores = torch.empty(2, 9, 9, dtype=torch.float64)
    for head in range(2):
        for i in range(9):
            for j in range(9):
                inside = q[0, head, i] @ k[0, head, j] + table[head, i - j + 8]
                scores[head, i, j] = inside / 12**0.5 if j <= i else -torch.inf
    torch.testing.assert_close(outputs("before_scale(clamp)"), (scores.softmax(-1) @ v[0])[None])


def test_a_rotation_and_other_biases_are_left_alone() -> None:
    torch.testing.assert_close(outputs("before_scale(rope)"), outputs("rope"), rtol=0, atol=0)
    both = outputs("alibi + before_scale(clamp)")
    assert (both - outputs("before_scale(alibi + clamp)")).abs().max() > 1e-3
    assert (both - outputs("alibi + clamp")).abs().max() > 1e-3


@pytest.mark.parametrize("backend", ["sdpa", "chunked", "auto"])
def test_backends_give_what_the_oracle_gives(backend: str) -> None:
    torch.testing.assert_close(outputs("alibi + before_scale(clamp)", backend), outputs("alibi + before_scale(clamp)"))


def test_it_has_no_channels_to_lift() -> None:
    with pytest.raises(Unsupported, match="nothing to lift"):
        outputs("before_scale(alibi)", "lifted")


def test_its_gradient_is_smaller_by_the_root_of_the_channels() -> None:
    slopes = []
    for text in ("clamp", "before_scale(clamp)"):
        encoding = made(text)
        _, _, bias = encoding.encode(draw(1, 2, 9, 12), draw(1, 2, 9, 12), At(draw(1, 9, 24), PLACES, PLACES, True))
        assert bias is not None
        (bias.tile() * draw(1, 2, 9, 9)).sum().backward()
        slopes += [one.grad for one in encoding.parameters() if one.grad is not None]
    torch.testing.assert_close(slopes[1] * 12**0.5, slopes[0])

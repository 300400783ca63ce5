"""What is declared of encodings and backends, against what they do."""

import pytest
import torch

from grape_bench.attention import Mask
from grape_bench.backends import load
from grape_bench.bias import ALL, Bias
from grape_bench.encodings import At, Composition, Encoding, Site, build
from grape_bench.lint.portrait import Portrait
from grape_bench.registry import Registry

SITE = Site(width=16, heads=2, kv_heads=2, head_dim=8, train_length=6, longest=12, causal=True)
REGISTRY = Registry("encodings")
PLAIN = [name for name, plugin in REGISTRY.items() if not plugin.wraps]
ALL_NAMES = [name if not plugin.wraps else f"{name}({plugin.facts['around']})" for name, plugin in REGISTRY.items()]
BATCH, LENGTH = 3, 6


def bias_of(encoding: Encoding) -> Bias | None:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.normal_(generator=generator)
    x = torch.randn(BATCH, LENGTH, SITE.width, generator=generator)
    q, k = torch.randn(2, BATCH, SITE.heads, LENGTH, SITE.head_dim, generator=generator)
    places = torch.arange(LENGTH)
    return encoding.encode(q, k, At(x, places, places, uniform=True))[2]


@pytest.mark.parametrize("name", ALL_NAMES)
def test_a_bias_by_content_is_one_matrix_for_each_sequence(name: str) -> None:
    bias = bias_of(build(name, SITE))
    expected = 0
    if bias is not None:
        scores = torch.randn(BATCH, SITE.heads, LENGTH, LENGTH) if bias.reads_scores else None
        tile = bias.tile(scores=scores).expand(-1, -1, LENGTH, LENGTH)
        expected = len(tile)
    assert Portrait.of(name, REGISTRY).matrices(BATCH) == expected


@pytest.mark.parametrize("name", PLAIN)
def test_hooks_are_read_from_the_source_as_the_class_has_them(name: str) -> None:
    seen = Portrait.of(name, REGISTRY)
    hooks = build(name, SITE).hooks
    assert seen.hooks == (hooks if REGISTRY[name].facts["tells"] else frozenset())


@pytest.mark.parametrize("text", ["layers(sinusoidal) + alibi", "rope + dape(kerple)", "randomized(rope + t5)"])
def test_hooks_of_wrappers_and_sums_are_those_of_what_is_in_them(text: str) -> None:
    site = SITE if "t5" not in text else Site(**{**vars(SITE), "train_length": 300, "longest": 300})
    encoding = build(text, site)
    parts = encoding.parts if isinstance(encoding, Composition) else [encoding]
    assert Portrait.of(text, REGISTRY).hooks == frozenset().union(*(one.hooks for one in parts))


@pytest.mark.parametrize("name", [name for name in PLAIN if not REGISTRY[name].facts["tells"]])
def test_what_tells_nothing_adds_nothing_to_the_keys_that_it_lets_be_seen(name: str) -> None:
    bias = bias_of(build(name, SITE))
    assert bias is None or set(bias.tile()[bias.tile().isfinite()].tolist()) == {0.0}


@pytest.mark.parametrize(("name", "option"), [("clamp", "window"), ("t5", "max_distance"), ("window", "tokens")])
def test_beyond_the_reach_all_distances_are_one(name: str, option: str) -> None:
    site = Site(**{**vars(SITE), "longest": 64})
    encoding = build(f"{name}({option}=20)", site)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.normal_()
    [known] = Portrait.of(f"{name}({option}=20)", REGISTRY).parts
    reach = known.reach(train_length=6)
    x, far = torch.zeros(1, 64, SITE.width), torch.arange(reach, 64)
    bias = encoding.bias(torch.zeros(1, 2, 1, 8), None, At(x, torch.tensor([63]), 63 - far, uniform=False))
    assert reach == 20
    assert bias is not None
    assert all(len(set(row.tolist())) == 1 for row in bias.tile()[0, :, 0])


def test_a_reach_of_none_is_the_training_length_and_a_word_is_no_bound() -> None:
    assert [
        Portrait.of(text, REGISTRY).parts[0].reach(48) for text in ("clamp", "t5(max_distance='half')", "rope")
    ] == [
        48,
        0,
        0,
    ]


class Spy(Bias):
    """Zeros, and the largest tile that was asked for."""

    def __init__(self) -> None:
        self.largest = 0

    def tile(self, rows: slice = ALL, cols: slice = ALL, scores: torch.Tensor | None = None) -> torch.Tensor:
        tile = torch.zeros(1, 1, 2048, 2048)[..., rows, cols]
        self.largest = max(self.largest, tile.shape[-2])
        return tile

    def leaves(self) -> tuple[torch.Tensor, ...]:
        return ()

    def with_leaves(self, leaves: object) -> "Spy":
        return self


@pytest.mark.parametrize("name", ["sdpa", "eager", "chunked"])
def test_a_dense_backend_asks_for_the_whole_matrix(name: str) -> None:
    spy, x = Spy(), torch.zeros(1, 1, 2048, 4)
    load(name).attend(x, x, x, spy, Mask())
    assert (spy.largest == 2048) is Registry("backends")[name].facts["dense"]

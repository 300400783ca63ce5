"""The gate lets every encoding through, and names those that do not compute what they declare."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from grape_bench import gate
from grape_bench.backends.sdpa import Sdpa
from grape_bench.cell import CostCell
from grape_bench.encodings import At
from grape_bench.encodings.fourier import Fourier
from grape_bench.encodings.rope import Rope
from grape_bench.encodings.t5 import T5
from grape_bench.errors import Unsupported
from grape_bench.gate import GateError
from grape_bench.operation import AttentionOperation, Decoder
from grape_bench.registry import Registry

REGISTRY = Registry("encodings")
NAMES = [f"{name}({plugin.facts['around']})" if plugin.wraps else name for name, plugin in REGISTRY.items()]
BACKENDS = list(Registry("backends"))
DTYPES = ["float32", "bfloat16", "float16"]


def cell(encoding: str, **changes: Any) -> CostCell:
    values = {"metric": "forward_ms", "length": 64, "heads": 4, "head_dim": 16, "encoding": encoding}
    return CostCell(**(values | changes))


def check(one: CostCell) -> None:
    gate.check(one, "cpu")


# Every encoding by the way most users run one, and those of each kind of bias on every backend.
EACH_KIND = ["none", "rope", "t5", "alibi", "fourier", "fox", "grape_ap", "cope"]
PASSING = list(
    dict.fromkeys(
        [
            *product(NAMES, ["sdpa"], DTYPES),
            *product(NAMES, ["auto"], ["float32"]),
            *product(EACH_KIND, BACKENDS, DTYPES),
        ]
    )
)


@pytest.mark.parametrize(("encoding", "backend", "dtype"), PASSING)
@pytest.mark.parametrize("causal", [False, True])
def test_every_encoding_passes(encoding: str, backend: str, dtype: str, causal: bool) -> None:
    try:
        check(cell(encoding, backend=backend, dtype=dtype, causal=causal))
    except Unsupported as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("changes", [{"kv_heads": 2}, {"length": 1}, {"length": 5, "batch": 3}, {"heads": 6}])
def test_sums_pass_at_other_shapes(backend: str, changes: dict[str, Any]) -> None:
    try:
        check(cell("rope + t5 + fourier", backend=backend, **changes))
    except Unsupported as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("backend", ["reversed", "lifted", "auto"])
def test_what_takes_no_gradients_is_compared_without(backend: str) -> None:
    """A table that learns has no gradient here, and a forward pass needs none."""
    t5 = cell("rope + t5" if backend == "reversed" else "rope + t5 + fourier", backend=backend)
    gate.check(t5, "cpu", backward=False)
    if backend != "auto":
        with pytest.raises(Unsupported, match="learns"):
            check(t5)


def at_positions(move: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """RoPE at other positions than it was told."""
    rotate = Rope.rotate

    def moved(self: Rope, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> Any:
        return rotate(self, q, k, features, replace(at, q_pos=move(at.q_pos), k_pos=move(at.k_pos), tables={}))

    return moved


def test_a_rotation_that_is_wrong_in_float32_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right, rounded = Rope.rotate, at_positions(lambda positions: positions.half().bfloat16() * 1.01)

    def rotate(self: Rope, q: Tensor, *rest: Any) -> Any:
        """Positions in half precision, as some published models have them."""
        return (rounded if q.dtype == torch.float32 else right)(self, q, *rest)

    monkeypatch.setattr(Rope, "rotate", rotate)
    with pytest.raises(GateError, match=r"outputs of rope\(base=500\) on sdpa in float32 differ"):
        check(cell("rope(base=500)"))


def test_a_gradient_that_is_wrong_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    bias = Fourier.bias

    def scaled(self: Fourier, q: Tensor, features: Tensor | None, at: At) -> Any:
        made = bias(self, q, features, at)
        if q.dtype == torch.float32:
            made.u.register_hook(lambda gradient: gradient * 1.01)  # type: ignore[attr-defined]
        return made

    monkeypatch.setattr(Fourier, "bias", scaled)
    with pytest.raises(GateError, match="the gradient of amplitude of fourier on sdpa"):
        check(cell("fourier"))


def test_a_parameter_that_is_cut_from_the_graph_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Oracle and operation run the same code and agree on a gradient of zero; a difference quotient does not."""
    bias = Fourier.bias

    def cut(self: Fourier, q: Tensor, features: Tensor | None, at: At) -> Any:
        made = bias(self, q, features, at)
        return made.with_leaves([leaf.detach() for leaf in made.leaves()])  # type: ignore[union-attr]

    monkeypatch.setattr(Fourier, "bias", cut)
    with pytest.raises(GateError, match="the gradient of amplitude of fourier differs from its difference quotient"):
        check(cell("fourier"))


def test_a_backend_that_drops_the_bias_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    attend = Sdpa.attend

    def dropping(self: Sdpa, q: Tensor, k: Tensor, v: Tensor, bias: Any, mask: Any, **more: Any) -> Tensor:
        return attend(self, q, k, v, None, mask, **more)

    monkeypatch.setattr(Sdpa, "attend", dropping)
    with pytest.raises(GateError, match="outputs of t5 on sdpa"):
        check(cell("t5"))
    check(cell("rope"))


def test_a_backend_that_leaks_the_future_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    attend = Sdpa.attend

    def leaking(self: Sdpa, q: Tensor, k: Tensor, v: Tensor, bias: Any, mask: Any, **more: Any) -> Tensor:
        return attend(self, q, k, v, bias, type(mask)(False, mask.keys), **more)

    monkeypatch.setattr(Sdpa, "attend", leaking)
    with pytest.raises(GateError, match="outputs of rope"):
        check(cell("rope", causal=True))


def test_what_declares_to_be_relative_and_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rope, "rotate", at_positions(lambda positions: positions + positions**2 / 100))
    with pytest.raises(GateError, match="rope declares to be relative, and a shift"):
        check(cell("rope"))


def test_a_sum_of_rotations_that_do_not_commute_is_not_relative() -> None:
    check(cell("rope + rope(base=100)"))
    with pytest.raises(GateError, match="declares to be relative, and a shift"):
        check(cell("rope + rope(layout='half')"))


@pytest.mark.parametrize("side", [0, 1])
def test_what_declares_to_keep_norms_and_does_not_is_refused(monkeypatch: pytest.MonkeyPatch, side: int) -> None:
    rotate = Rope.rotate

    def longer(*given: Any) -> tuple[Tensor, ...]:
        return tuple(1.001 * one if index == side else one for index, one in enumerate(rotate(*given)))

    monkeypatch.setattr(Rope, "rotate", longer)
    with pytest.raises(GateError, match="rope declares to keep norms"):
        check(cell("rope"))


def test_what_gives_no_number_far_away_is_not_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rope, "rotate", at_positions(lambda positions: positions / (positions < 500)))
    with pytest.raises(GateError, match=r"a shift of all positions changes outputs by nan"):
        check(cell("rope"))


def test_what_gives_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    values = T5._values
    monkeypatch.setattr(T5, "_values", lambda self, distance, table: values(self, distance, table) * math.nan)
    with pytest.raises(GateError, match="nan"):
        check(cell("t5"))


def test_the_gate_leaves_no_gradient_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    of = gate.AttentionOperation.of

    def watched(*args: Any, **options: Any) -> Any:
        seen.append(of(*args, **options))
        return seen[-1]

    monkeypatch.setattr(gate.AttentionOperation, "of", watched)
    check(cell("t5"))
    (operation,) = seen
    assert all(parameter.grad is None for parameter in operation.encoding.parameters())


def test_a_token_that_is_decoded_at_a_wrong_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    decoding = cell("t5", metric="decode_ms", causal=True)
    gate.check(decoding, "cpu", decodes=True)
    attend = Decoder._attend
    monkeypatch.setattr(Decoder, "_attend", lambda self, tokens, q, k: attend(self, tokens, 0 * q, 0 * k))
    gate.check(decoding, "cpu")
    with pytest.raises(GateError, match="a decoded token's outputs of t5"):
        gate.check(decoding, "cpu", decodes=True)


@pytest.mark.parametrize("encoding", ["none", "rope", "alibi", "t5", "fox"])
def test_a_cache_of_one_token_decodes(encoding: str) -> None:
    """The one token sees itself alone, so what comes out is its value, whatever the encoding."""
    operation = AttentionOperation.of(cell(encoding, metric="decode_ms", length=1, causal=True), "cpu")
    with torch.no_grad():
        assert torch.equal(operation.decoder().step(), operation.qkv[2])

"""FoX: gates that forget, whole and one token at a time."""

import math

import torch
from ours import attended, installed, normal, tile
from source import definitions
from torch import Tensor, nn

from grape_bench.attention import Cache, attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.encodings import At, Encoding

B, H, T, D = 2, 2, 30, 8
C = H * D
X = normal(B, T, C)
WEIGHT, START = normal(H, C, seed=1) * 0.3, normal(H, seed=2) + 2


def fox() -> Encoding:
    encoding = installed("fox", H, D)
    encoding.load_state_dict({"weight": WEIGHT.double(), "start": START.double()})
    return encoding


def logs() -> Tensor:
    """Of the gates, (B, H, T), number by number."""
    out = torch.zeros(B, H, T, dtype=torch.float64)
    for b in range(B):
        for h in range(H):
            for t in range(T):
                z = sum(w * x for w, x in zip(WEIGHT[h].tolist(), X[b, t].tolist(), strict=True)) + START[h].item()
                out[b, h, t] = -math.log1p(math.exp(-z))
    return out


def loop() -> Tensor:
    """Sums of the gates' logarithms between key and query, (B, H, T, T); zeros ahead."""
    out, steps = torch.zeros(B, H, T, T, dtype=torch.float64), logs()
    for i in range(T):
        for j in range(i):
            out[..., i, j] = steps[..., j + 1 : i + 1].sum(dim=-1)
    return out


def answered(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention by the loop's biases, row by row."""
    out, bias = torch.zeros(B, H, T, D, dtype=torch.float64), loop()
    q, k, v = q.double(), k.double(), v.double()
    for i in range(T):
        scores = (k[:, :, : i + 1] * q[:, :, i, None]).sum(dim=-1) / math.sqrt(D) + bias[..., i, : i + 1]
        weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
        out[:, :, i] = (weights[..., None] * v[:, :, : i + 1]).sum(dim=-2)
    return out


def test_outputs_are_those_of_fla(meet) -> None:
    naive = definitions("fla.ops.forgetting_attn.naive", "naive_forgetting_attn").naive_forgetting_attn
    q, k, v = normal(3, B, H, T, D)
    theirs = naive(*(x.transpose(1, 2) for x in (q, k, v, logs().float()))).transpose(1, 2)
    got = attended(fox(), q, k, v, X)
    meet.agrees("fox", "fla", theirs, got, answered(q, k, v))


def layer() -> nn.Module:
    """An attention layer of x-transformers with our gates."""
    from x_transformers.x_transformers import Attention

    torch.manual_seed(0)
    made = Attention(C, dim_head=D, heads=H, causal=True, data_dependent_alibi=True)
    made.data_dependent_alibi.to_forget_gates[0].load_state_dict({"weight": WEIGHT, "bias": START})
    return made


def split(made: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    """Its queries, keys and values of X, (B, H, T, D)."""
    q, k, v = (to(X).unflatten(-1, (H, D)).transpose(1, 2) for to in (made.to_q, made.to_k, made.to_v))
    return q, k, v


def out(made: nn.Module, heads: Tensor) -> Tensor:
    """Through its last projection, (B, T, C)."""
    return heads.transpose(1, 2).flatten(-2) @ made.to_out.weight.double().T


def test_biases_are_those_of_x_transformers(meet) -> None:
    past = torch.ones(T, T, dtype=torch.bool).tril()
    q, k, _ = normal(3, B, H, T, D)
    theirs = layer().data_dependent_alibi(X)
    got = tile(fox(), q, k, X)
    meet.agrees("fox, bias", "x-transformers", *(x.masked_fill(~past, 0.0) for x in (theirs, got, loop())))


def test_a_layer_of_x_transformers_reads_alike_and_decodes_otherwise(meet) -> None:
    """Its sum of gates begins anew with each chunk, so a decoded token forgets nothing of what lies before it."""
    made = layer()
    q, k, v = split(made)
    read, got, expected = (out(made, x) for x in (attended(fox(), q, k, v, X), decoded(q, k, v), answered(q, k, v)))
    meet.agrees("fox, layer", "x-transformers", made(X), read, expected)
    _, cache = made(X[:, :-1], return_intermediates=True)
    theirs, fault = made(X[:, -1:], cache=cache), "decoding: sums begin anew"
    meet.is_wrong("fox, decoding", "x-transformers", theirs, got, expected[:, -1:], by=0.1856, fault=fault)


def decoded(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Ours of the last token, through a cache."""
    encoding, cache, x = fox(), Cache(T), X.double()
    for t in range(T):
        here, now = torch.tensor([t]), slice(t, t + 1)
        qkv = (q[:, :, now].double(), k[:, :, now].double(), v[:, :, now].double())
        last = attend(encoding, Eager(), qkv, At(x[:, now], here, here, uniform=True), Mask(causal=True), cache)
    return last

"""PaTH: keys seen through a product of Householder-like maps."""

import math

import torch
from ours import attended, installed, normal
from source import definitions
from torch import Tensor
from torch.nn import functional as F

B, H, T, D = 2, 2, 37, 8  # a length that fills no chunk of the peer
C = H * D
X, DIRECTION, GATE = normal(B, T, C), normal(C, C, seed=1) * 0.3, normal(H, C, seed=2) * 0.3


def along() -> tuple[Tensor, Tensor]:
    """Unit directions (B, H, T, D) and strengths (B, H, T) between 0 and 2."""
    w = (X.double() @ DIRECTION.double().T).unflatten(-1, (H, D)).transpose(1, 2)
    return w / w.norm(dim=-1, keepdim=True), 2 / (1 + (-X.double() @ GATE.double().T).exp()).transpose(1, 2)


def loop(q: Tensor, k: Tensor, v: Tensor, forgotten: Tensor | None = None) -> Tensor:
    """q_i^T H_i ... H_{j+1} k_j, a matrix for each step, less what gates forget, then softmax row by row.

    Args:
        forgotten: logarithms of gates (B, H, T).
    """
    w, beta = along()
    q, k, v = q.double(), k.double(), v.double()
    out = torch.zeros(B, H, T, D, dtype=torch.float64)
    maps = torch.eye(D).double() - beta[..., None, None] * w[..., :, None] * w[..., None, :]
    for i in range(T):
        scores, seen, lost = torch.zeros(B, H, i + 1, dtype=torch.float64), q[:, :, i, None], torch.zeros(())
        for j in range(i, -1, -1):
            scores[..., j] = (seen[:, :, 0] * k[:, :, j]).sum(dim=-1) / math.sqrt(D) + lost
            seen = seen @ maps[:, :, j]
            lost = lost if forgotten is None else lost + forgotten[..., j]
        weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
        out[:, :, i] = (weights[..., None] * v[:, :, : i + 1]).sum(dim=-2)
    return out


def fla(q: Tensor, k: Tensor, v: Tensor, gates: Tensor) -> Tensor:
    naive = definitions("fla.ops.path_attn.naive", "naive_path_attn").naive_path_attn
    w, beta = along()
    given = (x.float().transpose(1, 2) for x in (q, k, v, F.normalize(w.float(), dim=-1), beta, gates))
    return naive(*given, scale=D**-0.5, chunk_size=16).transpose(1, 2)


PATH = {"direction": DIRECTION.double(), "gate": GATE.double(), "start": torch.zeros(H).double()}


def test_outputs_are_those_of_fla(meet) -> None:
    q, k, v = normal(3, B, H, T, D)
    encoding = installed("path", H, D)
    encoding.load_state_dict(PATH)
    meet.agrees("path", "fla", fla(q, k, v, torch.zeros(B, H, T)), attended(encoding, q, k, v, X), loop(q, k, v))


def test_with_forgetting_fla_takes_gates_times_sqrt_d(meet) -> None:
    """It divides the gates by sqrt(D) with the scores, where its forgetting attention adds them whole."""
    q, k, v = normal(3, B, H, T, D)
    weight = normal(H, C, seed=4).double() * 0.3
    gates = -(1 + (-X.double() @ weight.T).exp()).log().transpose(1, 2)
    encoding = installed("path + fox", H, D)
    fox = {"weight": weight, "start": torch.zeros(H).double()}
    parts = (PATH, fox)
    encoding.load_state_dict({f"parts.{n}.{key}": one for n, part in enumerate(parts) for key, one in part.items()})
    expected = loop(q, k, v, gates)
    meet.agrees("path + fox", "fla", fla(q, k, v, gates * D**0.5), attended(encoding, q, k, v, X), expected)

"""CoPE: positions that are counted by content."""

import math

import pytest
import torch
from ours import installed, normal, places
from torch import Tensor

B, H, T, D = 2, 2, 24, 8
Q, K = normal(2, B, H, T, D)


def scores(q: Tensor, k: Tensor) -> Tensor:
    """Scaled, with the future masked."""
    return (q @ k.mT / math.sqrt(D)).masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -torch.inf)


def loop(table: Tensor) -> Tensor:
    """(B, H, T, T), zeros ahead; gates are summed from the key to the query, both with it."""
    out, met = torch.zeros(B, H, T, T, dtype=torch.float64), scores(Q.double(), K.double())
    for b in range(B):
        for h in range(H):
            for i in range(T):
                for j in range(i + 1):
                    gates = [1 / (1 + math.exp(-met[b, h, i, k].item())) for k in range(j, i + 1)]
                    place = min(sum(gates), len(table) - 1)
                    low = math.floor(place)
                    high, share = math.ceil(place), place - low
                    out[b, h, i, j] = Q[b, h, i].double() @ ((1 - share) * table[low] + share * table[high])
    return out


@pytest.mark.parametrize("positions", [4, 16])
def test_biases_are_those_of_x_transformers(positions: int, meet) -> None:
    from x_transformers.x_transformers import CoPE

    table = normal(positions, D, seed=1)
    theirs = CoPE(D, H, positions)
    theirs.load_state_dict({"pos_emb": table})
    encoding = installed(f"cope(positions={positions})", H, D)
    encoding.load_state_dict({"table": table.double()[None]})
    bias = encoding.bias(Q.double(), None, places(Q[:, 0]))
    assert bias is not None
    got = bias.tile(scores=scores(Q.double(), K.double()))
    given = theirs(Q, scores(Q, K))
    meet.agrees("cope", "x-transformers", given.tril(), got.tril(), loop(table.double()))

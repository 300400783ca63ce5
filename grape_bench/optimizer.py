"""AdamW as every training uses it: its rates by step, and which parameter learns and decays how fast."""

import math

import torch
from torch import Tensor, nn

from grape_bench.cell import TrainingOptions
from grape_bench.encodings import Encoding
from grape_bench.model import Transformer

_BETAS = (0.9, 0.98)
_FLOOR = 0.05  # of the peak learning rate, at the end


def learning_rate(options: TrainingOptions, step: int) -> float:
    """Linear warm-up to `lr`, then a cosine to 5 % of it at the last step."""
    if step < options.warmup:
        return options.lr * (step + 1) / options.warmup
    done = (step - options.warmup) / max(1, options.steps - options.warmup)
    return options.lr * (_FLOOR + (1 - _FLOOR) * 0.5 * (1 + math.cos(math.pi * done)))


def set_rates(optimizer: torch.optim.Optimizer, options: TrainingOptions, step: int) -> None:
    """Give each group its rate of this step, in place where it is a tensor."""
    for group in optimizer.param_groups:
        rate = group["factor"] * learning_rate(options, step)
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def make_optimizer(model: Transformer, options: TrainingOptions) -> torch.optim.AdamW:
    """AdamW: decay on matrices alone, none on encodings; learned bias tables at `table_lr` times the rate."""
    tables, own = set[int](), set[int]()
    for module in model.modules():
        if isinstance(module, Encoding):
            ids = {id(one) for one in module.parameters()}  # those of its linear layers, if it has any, included
            own |= ids
            tables |= ids if module.table_lr else set()
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for one in model.parameters():
        decay = options.weight_decay if one.dim() > 1 and id(one) not in own else 0.0
        factor = options.table_lr if id(one) in tables else 1.0
        groups.setdefault((factor, decay), []).append(one)
    rows = [{"params": ones, "factor": factor, "weight_decay": decay} for (factor, decay), ones in groups.items()]
    device = next(model.parameters()).device
    if device.type == "cpu":
        return torch.optim.AdamW(rows, lr=options.lr, betas=_BETAS)
    # A graph holds no number of Python's, so rates and counts are tensors there.
    rated = [{**row, "lr": torch.tensor(options.lr, device=device)} for row in rows]
    return torch.optim.AdamW(rated, betas=_BETAS, fused=True, capturable=True)

"""AdamW: its schedule by hand, and what learns and decays how fast."""

import pytest
import torch

from grape_bench.backends.eager import Eager
from grape_bench.cell import ModelOptions, TrainingOptions
from grape_bench.encodings import Encoding, Site
from grape_bench.model import Transformer
from grape_bench.optimizer import learning_rate, make_optimizer


def test_the_rate_rises_in_a_line_and_falls_in_a_cosine() -> None:
    options = TrainingOptions(steps=104, warmup=4, lr=2.0)
    assert [learning_rate(options, step) for step in range(4)] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert learning_rate(options, 4) == pytest.approx(2.0)
    # Half way between the peak and 5 % of it; a quarter: 0.05 + 0.95 (1 + cos(pi / 4)) / 2 of the peak.
    assert learning_rate(options, 54) == pytest.approx(2.0 * 0.525, rel=2e-2)
    assert learning_rate(options, 29) == pytest.approx(2.0 * 0.8608757, rel=2e-2)
    assert learning_rate(options, 103) == pytest.approx(0.1, rel=1e-2)
    rates = [learning_rate(options, step) for step in range(4, 104)]
    assert rates == sorted(rates, reverse=True)


def test_no_warm_up_begins_at_the_peak() -> None:
    assert learning_rate(TrainingOptions(steps=10, warmup=0, lr=1.0), 0) == pytest.approx(1.0)


def test_a_warm_up_that_outlasts_the_training_still_rises() -> None:
    options = TrainingOptions(steps=5, warmup=100, lr=1.0)
    assert [learning_rate(options, step) for step in range(5)] == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.05])


def model(encoding: str) -> Transformer:
    options = ModelOptions(width=16, layers=2, heads=2)
    return Transformer(options, encoding, Eager(), vocabulary=11, answers=5, lengths=(16, 24))


def settings(model: Transformer, options: TrainingOptions) -> dict[str, tuple[float, float]]:
    """Factor and decay by the parameter's name."""
    names = {id(value): name for name, value in model.named_parameters()}
    groups = make_optimizer(model, options).param_groups
    found = {names[id(one)]: (group["factor"], group["weight_decay"]) for group in groups for one in group["params"]}
    assert found.keys() == set(names.values()), "each parameter in exactly one group"
    assert sum(len(group["params"]) for group in groups) == len(names)
    return found


def test_tables_learn_faster_and_nothing_of_an_encoding_decays() -> None:
    found = settings(model("rope + t5 + fourier + learned"), TrainingOptions(weight_decay=0.02, table_lr=7.0))
    by_part = {name.split(".encoding.")[1]: value for name, value in found.items() if ".encoding." in name}
    assert by_part == {"parts.1.table": (7.0, 0.0), "parts.2.amplitude": (7.0, 0.0), "parts.3.table": (1.0, 0.0)}
    for name, value in found.items():
        if ".encoding." not in name:
            matrix = name.endswith("weight") and "norm" not in name
            assert value == (1.0, 0.02 if matrix else 0.0), name


class Gated(Encoding):
    """An encoding with a linear layer of its own."""

    def __init__(self, site: Site):
        super().__init__()
        self.gate = torch.nn.Linear(site.width, 1)

    def embed(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x).sigmoid()


def test_a_linear_layer_of_an_encoding_does_not_decay_either() -> None:
    one = model("none")
    one.layers[0].attention.encoding = Gated(Site(16, 2, 2, 8, 16, 16))  # type: ignore[union-attr]
    found = settings(one, TrainingOptions())
    assert found["layers.0.attention.encoding.gate.weight"] == (1.0, 0.0)

"""Tokens trained on in a second."""

from grape_bench.metrics import Metric


class TokensPerSecond(Metric):
    """Batch times length over the time of a training step."""

    kind = "derived"
    unit = "tokens/s"
    better = "higher"
    scopes = ("model",)
    derived_from = "train_step_ms"


PLUGIN = TokensPerSecond

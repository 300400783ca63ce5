"""Share of right answers."""

from grape_bench.metrics import Metric


class Accuracy(Metric):
    """Right answers over questions, by group of questions and test length; the training is the measurement."""

    kind = "accuracy"
    unit = "share"
    better = "higher"
    scopes = ()


PLUGIN = Accuracy

"""Score: right answers, or a loss, of one group of questions at one length, and what is compared of it."""

from grape_bench.cell import Frozen

LEARNED_LOSS = 0.3  # of the blind reader's loss, which a training must save to have learned


class Score(Frozen):
    """Right answers of one group of questions at one length.

    Args:
        blind: accuracy that a reader without positions can reach; chance: accuracy of guessing.
        nats: summed loss, in a task that is judged by it; None elsewhere. blind_nats: what a reader without positions
            loses a question.
    """

    length: int
    group: str
    correct: int
    total: int
    blind: float
    chance: float
    nats: float | None = None
    blind_nats: float | None = None

    def of(self, length: int, group: str) -> bool:
        """Whether it is the one of this length and group."""
        return (self.length, self.group) == (length, group)

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    @property
    def loss(self) -> float | None:
        """Nats a question, in a task that is judged by its loss."""
        return None if self.nats is None else self.nats / self.total

    @property
    def merit(self) -> float:
        """What is compared, more being better: the accuracy, or the loss with a minus."""
        return self.accuracy if self.loss is None else -self.loss

    @property
    def normalised(self) -> float:
        """0 without positions, 1 for a perfect reader; nan where the two are one.

            (accuracy - blind) / (1 - blind)      or of a loss      (blind - loss) / blind

        Both are a line through what is compared, so that ranks and groups are the same by either.
        """
        if self.loss is not None:
            return 1 - self.loss / self.blind_nats if self.blind_nats else float("nan")
        return (self.accuracy - self.blind) / (1 - self.blind) if self.blind < 1 else float("nan")

    @property
    def figure(self) -> float:
        """What a table shows: the loss in a task that is judged by it, otherwise the accuracy."""
        return self.accuracy if self.loss is None else self.loss

    def learned(self, threshold: float) -> bool:
        """Whether the normalised score reaches the threshold, or that of losses, of which none comes near 1."""
        return self.normalised >= (threshold if self.loss is None else LEARNED_LOSS)

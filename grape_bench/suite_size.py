"""Sizes of a suite: what a larger machine trains instead."""

from typing import TypeVar

from pydantic import BaseModel, Field

from grape_bench.cell import Count, Frozen, ModelOptions, TrainingOptions
from grape_bench.suite_values import Axis, Plugins

Entry = TypeVar("Entry", bound=BaseModel)


class Size(Frozen):
    """Another size of the trainings: what stands here takes the place of the same keys in every entry of `accuracy`."""

    train_length: Count | None = Field(None, description="tokens of the training sequences")
    test_lengths: Axis[Count] = Field((), description="tokens of the test sequences")
    model: ModelOptions = Field(ModelOptions(), description="some options of the model; the others stay")
    training: TrainingOptions = Field(TrainingOptions(), description="some options of the recipe; the others stay")
    minutes: float | None = Field(None, gt=0, le=10_000, description="minutes after which a training is stopped")

    def of(self, entry: Entry) -> Entry:
        """The entry at this size.

        Raises:
            ValidationError: the two do not fit together.
        """
        own, other = entry.model_dump(exclude_unset=True), self.model_dump(exclude_unset=True)
        inner = {key: own.get(key, {}) | other.get(key, {}) for key in ("model", "training") if key in own | other}
        return type(entry).model_validate(own | other | inner, context=Plugins())

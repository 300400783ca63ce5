"""The format of a claim: a sentence about encodings that records can support or refute."""

import re
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from grape_bench.cell import Count, Dtype, Frozen, Scope
from grape_bench.suite_values import Axis, BackendName, EncodingText, TaskText, wrong

OF_TRAININGS = ("accuracy", "loss")  # metrics that are read from trainings; any other is a cost
Relation = Literal["above", "below", "same", "order", "diminishing"]


def _at(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{1,4}(\.\d{1,4})?x", value):
        return value
    raise wrong(f"must be tokens, or a multiple of the training length such as 2x, not {value!r}")


At = Annotated[
    int | str,
    PlainValidator(_at),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^\d+(\.\d+)?x$"}]}),
]


class Claim(Frozen):
    """A sentence about encodings, and which comparison would show it."""

    id: str = Field(pattern=r"^\w[\w.-]*$", max_length=40, description="a short name, such as C1")
    says: str = Field(min_length=1, max_length=500, description="the claim in words")
    source: str = Field("", max_length=500, description="who claims it, and where")
    relation: Relation = Field(
        description="above or below: each of `encodings` than each of `against`; same: as each of `against`, or where "
        "that is left out as each other; order: each of `encodings` above the one before it; diminishing: each step "
        "from one of `encodings` to the next gains more than the step after it"
    )
    encodings: Axis[EncodingText] = Field(description="some of the suite's encodings")
    against: Axis[EncodingText] = Field(
        (), description="what they are compared with; left out for order and diminishing, and for each with itself"
    )
    metric: str = Field(
        "accuracy", description="accuracy, the loss of a training, or a metric that the suite's `cost` measures"
    )
    task: TaskText | None = Field(None, description="of a training: a task of the suite; all of them where left out")
    entry: str | None = Field(
        None, min_length=1, description="of a training: an entry of `accuracy` by its name; all of them where left out"
    )
    against_entry: str | None = Field(
        None,
        min_length=1,
        description="of a training: the entry in which `against` stand, or `encodings` themselves where that is left "
        "out; the same as theirs where left out",
    )
    step: Count | None = Field(
        None,
        description="of a loss: the training step, seen through the mean of a fortieth of all; the last if left out",
    )
    group: str | None = Field(
        None, min_length=1, description="of an accuracy: a group of questions; the headline where left out"
    )
    scope: Scope | None = Field(None, description="of a cost; every one that has the metric where left out")
    backend: BackendName | None = Field(None, description="of a cost; every one that has the metric where left out")
    against_backend: BackendName | None = Field(
        None,
        description="of a cost: the backend in which `against` stand, or `encodings` themselves where that is left "
        "out; the same as theirs where left out",
    )
    heads: Count | None = Field(None, description="of a cost; every number that has the metric where left out")
    dtype: Dtype | None = Field(None, description="of a cost; every number format that has the metric where left out")
    at: At | None = Field(
        None,
        description="tokens, or a multiple of the training length such as 2x; where left out an accuracy is at the "
        "training length, and a cost at every length",
    )
    margin: float | None = Field(
        None,
        gt=-1,
        le=100,
        description="same: by how much at most, where left out 0.02 of accuracy or loss or 0.03 of a ratio; otherwise: "
        "by how much at least, 0 where left out, and below 0 for how much may be missing",
    )

    @property
    def elsewhere(self) -> str | None:
        """The entry or backend in which the other side stands, where that is another one."""
        return self.against_entry or self.against_backend

    def length(self, train_length: int) -> float:
        """The test length that it speaks of, in tokens; no suite tests a broken one."""
        if isinstance(self.at, int):
            return self.at
        return train_length * float(self.at.removesuffix("x")) if self.at else train_length

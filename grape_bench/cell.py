"""Cell: one point of a suite, with an identity that outlives labels and defaults. Block: cells measured together."""

import hashlib
import json
from collections.abc import Set
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from grape_bench.expression import canonical

Dtype = Literal["float32", "bfloat16", "float16"]
Scope = Literal["attention", "model"]
Count = Annotated[int, Field(ge=1, le=2**31)]


class Frozen(BaseModel):
    """Data that is checked when made and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelOptions(Frozen):
    """The one small transformer, in which only the encoding changes."""

    width: Count = Field(64, description="model channels C")
    layers: Count = Field(2, description="layers")
    heads: Count = Field(4, description="query heads H")
    kv_heads: Count | None = Field(None, description="key and value heads; null for as many as heads")
    causal: bool = Field(False, description="a decoder; otherwise a bidirectional encoder")
    qk_norm: bool = Field(False, description="normalise queries and keys before they are rotated")
    kv_shift: bool = Field(False, description="mix each key and value with that of the token before it")
    norm: Literal["layer", "batch"] = Field(
        "layer",
        description="layer: each token by itself; batch: each channel over all tokens, by statistics that are kept",
    )


class TrainingOptions(Frozen):
    """The recipe of one training; the defaults are those found for task C."""

    steps: Count = Field(1000, description="optimizer steps")
    batch: Count = Field(48, description="sequences a step")
    lr: float = Field(6e-3, gt=0, le=10, description="peak learning rate, after warm-up; then a cosine down to 5 %")
    warmup: int = Field(100, ge=0, description="steps in which the learning rate rises")
    weight_decay: float = Field(0.01, ge=0, description="of AdamW, for matrices")
    clip: float = Field(1.0, gt=0, description="largest norm of the gradient")
    table_lr: float = Field(10.0, gt=0, description="factor on lr for learned bias tables, which have no weight decay")
    start: Literal["standard", "tied"] = Field(
        "standard",
        description="tied: key projections start as query projections, so that equal tokens attend to each other "
        "from the first step",
    )
    shortest: Count | None = Field(
        None,
        description="shortest training length in tokens: a batch's length is drawn log-uniformly from it up to the "
        "training length; null trains at the training length alone",
    )
    even: bool = Field(False, description="of the lengths from `shortest` on, only even ones")
    adapt: Count | None = Field(
        None,
        description="batches of each test length, without answers, from which `norm: batch` takes its statistics anew "
        "before the test; null keeps those of the training",
    )
    test_examples: Count = Field(500, description="test sequences for each length")


class CostCell(Frozen):
    """What one encoding costs at one setting, in one metric.

    Args:
        scope: `attention` is the operation alone on random q, k, v; `model` is a training step of the suite's model.
        encoding: canonical text of an expression.
        length: tokens, of the sequence or of the cache that is decoded against.
        kv_heads: None for as many as heads.
        layers: of the model, where the scope is `model`.
        compiled: by torch.compile; compiling is no part of any sample.
        versions: `name@version` of everything that could change the number.
    """

    kind: Literal["cost"] = "cost"
    metric: str
    scope: Scope = "attention"
    encoding: str
    backend: str = "sdpa"
    length: Count
    heads: Count = 8
    kv_heads: Count | None = None
    head_dim: Count = 64
    batch: Count = 1
    dtype: Dtype = "float32"
    causal: bool = False
    layers: Count = 2
    compiled: bool = False
    versions: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return identity(self)

    @property
    def setting(self) -> str:
        """Everything but the encoding: cells of one setting are compared with each other."""
        return self.without("encoding")

    def without(self, *axes: str) -> str:
        """What cells have in common that differ along some axes, such as the encoding and the backend."""
        return identity(self.model_copy(update={**dict.fromkeys(axes), "versions": ()}))


class AccuracyCell(Frozen):
    """What one encoding learns of one task from one seed, tested at several lengths (tokens).

    Args:
        task: canonical text of a task expression, such as `registers(writes=4)`.
        seed: fixes data, order and the start of every shared weight, equally for all encodings.
        tune: learning rates of which the best for this encoding is taken, instead of the recipe's. The choice is made
            by trainings of their own, and its outcome is in the reading.
        controls: beyond the training length, test with a window of that length and with the input cut to it as well.
    """

    kind: Literal["accuracy"] = "accuracy"
    metric: Literal["accuracy"] = "accuracy"
    task: str
    encoding: str
    backend: str = "sdpa"
    dtype: Dtype = "float32"
    seed: int
    train_length: Count
    test_lengths: tuple[Count, ...]
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()
    tune: tuple[float, ...] = ()
    controls: bool = False
    versions: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return identity(self)

    @property
    def setting(self) -> str:
        """Everything but the encoding and the seed: cells of one setting are compared with each other."""
        return identity(self.model_copy(update={"encoding": "", "seed": 0, "versions": ()}))


Cell = Annotated[CostCell | AccuracyCell, Field(discriminator="kind")]


@dataclass(frozen=True)
class Block:
    """Cells measured together, in one fresh process, because their ratio is the result.

    Args:
        cells: all of one setting and one metric for cost; a single cell for accuracy.
        baseline: index of the cell that ratios refer to, None where the suite names none of these.
    """

    cells: tuple[CostCell | AccuracyCell, ...]
    baseline: int | None = None

    @property
    def id(self) -> str:
        return _digest([cell.id for cell in self.cells])

    @property
    def exclusive(self) -> bool:
        """Cost needs the device to itself; accuracy cells may run side by side."""
        return self.cells[0].kind == "cost"

    def only(self, ids: Set[str]) -> "Block":
        """The same block with some of its members."""
        base = self.cells[self.baseline].id if self.baseline is not None else None
        cells = tuple(cell for cell in self.cells if cell.id in ids)
        return Block(cells, next((i for i, cell in enumerate(cells) if cell.id == base), None))

    def without(self, cell_id: str) -> "Block":
        """The same block less one member, such as one that took the process down."""
        return self.only({cell.id for cell in self.cells} - {cell_id})


def identity(cell: CostCell | AccuracyCell) -> str:
    """Hash of the options that differ from their defaults, numbers in one spelling: 16 hexadecimal digits.

    An option that is added later with a default leaves every older identity as it was.
    """
    return _digest([cell.kind, _spelling(cell.model_dump(exclude_defaults=True))])


def _spelling(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _spelling(one) for key, one in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_spelling(one) for one in value]
    return canonical(value)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]

"""The entries of a suite: what each key of a cost grid and of a training is, its bounds and its meaning."""

from collections.abc import Iterable

from pydantic import Field, ValidationInfo, field_validator

from grape_bench.cell import Count, Dtype, Frozen, ModelOptions, Scope, TrainingOptions
from grape_bench.expression import Expression
from grape_bench.suite_values import Axis, BackendName, EncodingText, Name, Rate, TaskText, as_finding, plugins, wrong


def _divides(heads: Iterable[int], kv_heads: int | None) -> None:
    for one in heads:
        if kv_heads and one % kv_heads:
            raise wrong(f"{one} heads do not divide into {kv_heads} key and value heads; write a grid for each")


def _domain(task: str, info: ValidationInfo) -> object:
    (part,) = Expression.parse(task, plugins(info)["tasks"]).parts
    return plugins(info)["tasks"][part.name].facts["domain"]


class CostGrid(Frozen):
    """What the encodings cost, at every combination of the listed settings."""

    scope: Scope = Field("attention", description="attention: the operation alone; model: a step of the whole model")
    lengths: Axis[Count] = Field(description="tokens of the sequence, or of the cache that is decoded against")
    heads: Axis[Count] = Field((8,), description="query heads")
    kv_heads: Axis[Count | None] = Field((None,), description="key and value heads; null for as many as heads")
    head_dim: Axis[Count] = Field((64,), description="channels of one head")
    batch: Axis[Count] = Field((1,), description="sequences at once")
    dtypes: Axis[Dtype] = Field(("float32",), description="number formats")
    metrics: Axis[str] = Field(description="what is measured; `grape-bench list metrics` names all")
    backends: Axis[BackendName] = Field(("sdpa",), description="attention backends; see `grape-bench list backends`")
    causal: bool = Field(False, description="whether a token sees only itself and the past")
    layers: Count = Field(2, description="layers of the model, where the scope is model")
    compiled: bool = Field(False, description="by torch.compile; see the metric compile_ms for what that takes")
    encodings: Axis[EncodingText] = Field((), description="some of the suite's encodings; all where left out")
    minutes: float | None = Field(
        None, gt=0, le=10_000, description="minutes after which one of its blocks is stopped; the suite's if left out"
    )

    @field_validator("kv_heads")
    @classmethod
    def _kv_heads_divide(cls, items: tuple[int | None, ...], info: ValidationInfo) -> tuple[int | None, ...]:
        for item in items:
            _divides(info.data.get("heads", ()), item)
        return items

    @field_validator("metrics")
    @classmethod
    def _metrics_fit(cls, items: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        scope = info.data.get("scope")
        for index, item in enumerate(items):
            with as_finding(index):
                facts = plugins(info)["metrics"][item].facts
            if facts.get("kind") == "accuracy":
                raise wrong(f"{item} is no cost; it is measured by the entries of 'accuracy'", index)
            if scope and scope not in facts.get("scopes", ()):
                fitting = " or ".join(facts.get("scopes", ())) or "none"
                raise wrong(f"{item} is not measured in scope {scope}; its scope is {fitting}", index)
        return items

    @field_validator("layers")
    @classmethod
    def _layers_need_a_model(cls, layers: int, info: ValidationInfo) -> int:
        if info.data.get("scope") == "attention":
            raise wrong("there are no layers in scope attention; remove the key or write scope: model")
        return layers


class Tuning(Frozen):
    """What each encoding may choose for itself, by held-out accuracy at the training length, at equal budgets."""

    lr: Axis[Rate] = Field(description="peak learning rates, of which the best for an encoding trains all its seeds")


class AccuracyGrid(Frozen):
    """What the encodings learn of one task: one training for each encoding, seed and number format."""

    name: Name | None = Field(None, description="a word by which claims call this entry")
    task: TaskText = Field(description="a task with its options, such as registers(writes=3)")
    train_length: Count = Field(description="tokens of the training sequences")
    test_lengths: Axis[Count] = Field(description="tokens of the test sequences; the training length is among them")
    model: ModelOptions = Field(ModelOptions(), validate_default=True, description="the transformer that is trained")
    training: TrainingOptions = Field(TrainingOptions(), description="the recipe of the training")
    tune: Tuning | None = Field(None, description="learning rates to choose from; the recipe's own where left out")
    controls: bool = Field(
        False,
        description="beyond the training length, test the trained model also with a window of that length, and with "
        "the input cut to its last tokens, as many as it was trained on",
    )
    dtypes: Axis[Dtype] = Field(("float32",), description="number formats")
    backend: BackendName = Field("sdpa", description="attention backend")
    encodings: Axis[EncodingText] = Field((), description="some of the suite's encodings; all where left out")
    minutes: float | None = Field(
        None, gt=0, le=10_000, description="minutes after which one of its blocks is stopped; the suite's if left out"
    )

    @field_validator("test_lengths")
    @classmethod
    def _training_length_is_tested(cls, items: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        if info.data.get("train_length", items[0]) not in items:
            raise wrong(f"the training length {info.data['train_length']} must be among the test lengths")
        return items

    @field_validator("model")
    @classmethod
    def _answers_are_not_seen(cls, model: ModelOptions, info: ValidationInfo) -> ModelOptions:
        task = info.data.get("task")
        if task and not model.causal and _domain(task, info) == "causal":
            raise wrong(f"{task} asks for the next token, which a bidirectional model sees; write causal: true")
        return model

    @field_validator("model")
    @classmethod
    def _heads_divide(cls, model: ModelOptions) -> ModelOptions:
        if model.width % model.heads:
            raise wrong(f"width {model.width} does not divide into {model.heads} heads")
        _divides((model.heads,), model.kv_heads)
        return model

    @field_validator("training")
    @classmethod
    def _shortest_is_short(cls, training: TrainingOptions, info: ValidationInfo) -> TrainingOptions:
        length = info.data.get("train_length")
        if length and training.shortest and training.shortest > length:
            raise wrong(f"{training.shortest} is longer than the training length {length}", "shortest")
        if training.even and training.shortest is None:
            raise wrong("one length is trained; give the key 'shortest' for several", "even")
        if training.adapt and (model := info.data.get("model")) and model.norm != "batch":
            raise wrong(f"a {model.norm} norm keeps no statistics to adapt; it takes norm: batch of the model", "adapt")
        return training

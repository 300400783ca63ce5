"""Identity: what changes a cell's name, and what does not."""

import pytest
from pydantic import ValidationError

from grape_bench.cell import AccuracyCell, Block, CostCell, ModelOptions, TrainingOptions

COST = {"metric": "forward_ms", "encoding": "rope", "length": 256}
TRAINING = {"task": "registers", "encoding": "rope", "seed": 0, "train_length": 64, "test_lengths": (64,)}
OTHERS = {
    "compiled": True,
    "metric": "peak_mib",
    "scope": "model",
    "encoding": "alibi",
    "backend": "eager",
    "length": 257,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 32,
    "batch": 2,
    "dtype": "bfloat16",
    "causal": True,
    "layers": 3,
    "versions": ("rope@2",),
}


def cost(**changes: object) -> CostCell:
    return CostCell.model_validate(COST | changes)


def training(**changes: object) -> AccuracyCell:
    return AccuracyCell.model_validate(TRAINING | changes)


def test_an_identity_is_sixteen_hexadecimal_digits() -> None:
    assert len(cost().id) == len(training().id) == 16
    int(cost().id, 16)


def test_spelled_out_defaults_do_not_change_an_identity() -> None:
    assert cost(heads=8, dtype="float32", causal=False, backend="sdpa", kv_heads=None).id == cost().id
    assert training(model=ModelOptions(width=64), training=TrainingOptions(steps=1000)).id == training().id


def test_the_spelling_of_a_number_does_not_change_an_identity() -> None:
    ids = {training(training={"weight_decay": one, "steps": 200}).id for one in (1, 1.0, 1e0)}
    ids |= {training(training={"steps": 200.0, "weight_decay": 1}).id}
    assert len(ids) == 1


def test_an_option_added_later_leaves_older_identities_as_they_were() -> None:
    class Later(CostCell):
        sinks: int = 0

    class LaterModel(ModelOptions):
        bias: bool = False

    class LaterTraining(AccuracyCell):
        model: LaterModel = LaterModel()
        packing: str = "none"

    assert Later.model_validate(COST).id == cost().id
    assert Later.model_validate({**COST, "sinks": 1}).id != cost().id
    assert LaterTraining.model_validate({**TRAINING, "model": {"width": 32}}).id == training(model={"width": 32}).id


@pytest.mark.parametrize("key", sorted(CostCell.model_fields.keys() - {"kind"}))
def test_every_field_is_part_of_the_identity(key: str) -> None:
    assert cost(**{key: OTHERS[key]}).id != cost().id


@pytest.mark.parametrize("key", sorted(CostCell.model_fields.keys() - {"kind"}))
def test_a_setting_is_everything_but_the_encoding(key: str) -> None:
    same = cost(**{key: OTHERS[key]}).setting == cost().setting
    assert same == (key in ("encoding", "versions"))


def test_a_setting_of_trainings_spans_seeds() -> None:
    assert training(seed=7, encoding="t5").setting == training().setting
    assert training(seed=7).id != training().id
    assert training(train_length=32).setting != training().setting


def test_identities_stay_as_they_are() -> None:
    """Records on disk are found by these; a change here is a loss of all history."""
    assert (cost().id, training().id) == ("5b34fa1cebbd9278", "83ceabffdcae607f")


@pytest.mark.parametrize(
    "changes", [{"length": 0}, {"heads": 2**40}, {"dtype": "float64"}, {"scope": "layer"}, {"colour": 1}]
)
def test_a_cell_is_checked_when_made(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        cost(**changes)


def test_a_cell_never_changes() -> None:
    with pytest.raises(ValidationError):
        cost().length = 3  # type: ignore[misc]


def test_a_block_without_a_member_keeps_its_baseline() -> None:
    cells = tuple(cost(encoding=one) for one in ("alibi", "none", "rope"))
    block = Block(cells, baseline=1)
    left = block.without(cells[0].id)
    assert (left.cells, left.baseline) == (cells[1:], 0)
    assert block.without(cells[1].id).baseline is None
    assert left.id != block.id


def test_only_cost_wants_the_device_for_itself() -> None:
    assert Block((cost(),)).exclusive
    assert not Block((training(),)).exclusive

"""The figures of docs/gpu-predictions.md are those of scripts/gpu_predictions.py, and some of them come out by hand."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

HOME = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def predictions(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("gpu_predictions")


def test_the_page_has_the_figures_of_the_suites(predictions: ModuleType) -> None:
    page = (HOME / "docs" / "gpu-predictions.md").read_text(encoding="utf-8")
    assert predictions.written(page) == page, "run python scripts/gpu_predictions.py --write"


def test_a_cache_by_hand(predictions: ModuleType) -> None:
    cells = [one for one in predictions.cells("long")[1] if one.metric == "decode_ms" and one.kv_heads == 8]
    longest = max(cells, key=lambda one: one.length)
    # Keys and values of 131072 tokens, 8 heads of 128 channels, two bytes each.
    assert predictions.cache_bytes(longest) == 2 * 131_072 * 8 * 128 * 2


def test_a_step_by_hand(predictions: ModuleType) -> None:
    trainings = [one for one in predictions.cells("source-table")[1] if one.kind == "accuracy"]
    registers = next(one for one in trainings if one.task == "registers")
    attention, linear, _ = predictions.step_s(registers, 2048)
    # Seven products of two operations in three whole layers: 80 sequences, 128 channels, 2048 x 2048 pairs.
    assert attention == pytest.approx(3 * 7 * 2 * 80 * 128 * 2048**2 / 35e12)
    # Three passes of two operations over 12 C^2 weights a layer; the last layer has a sixth of them for all tokens.
    assert linear == pytest.approx(3 * 2 * 80 * 2048 * 12 * 128**2 * (3 + 1 / 6) / 50e12)


def test_the_script_measures_what_is_predicted(predictions: ModuleType) -> None:
    """The filters of the step `memory` are those that its prediction is for."""
    script = (HOME / "scripts" / "gpu.sh").read_text(encoding="utf-8")
    for word in predictions.MEMORY:
        assert word in script

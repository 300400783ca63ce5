"""Replacing the encoding of a model: the Python of docs/library.md, with what needs transformers."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"
_BLOCK = re.compile(r"^```python(?: peers)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """What the page has defined when it has run; it asserts the rest itself."""
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in _BLOCK.finditer(text):
        above = "\n" * text.count("\n", 0, block.start(1))  # so that an error names the line of the page
        exec(compile(above + block[1], str(PAGE), "exec"), names)
    return names


def test_the_same_encoding_gives_the_same_losses_for_twenty_steps(page) -> None:
    losses = page["twenty_losses"](page["replace"](page["llama"](), "rope(layout='half')"))
    assert len(losses) == 20
    torch.testing.assert_close(losses, page["old"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("text", ["alibi", "rope(layout='half') + fourier", "t5", "fox", "rope + fox"])
def test_another_encoding_starts_no_higher(page, text: str) -> None:
    losses = page["twenty_losses"](page["replace"](page["llama"](), text))
    assert losses[0] < page["old"][0] + 0.02
    assert losses.mean() < page["old"].mean() + 0.02


def test_without_any_encoding_a_layer_cannot_tell_order(page) -> None:
    assert page["difference"](page["replace"](page["llama"](layers=1), "none")) < 1e-6
    assert page["difference"](page["replace"](page["llama"](layers=1), "alibi")) > 1e-3

"""The Python of docs/library.md, run from top to bottom; `python peers` runs in tests/peers, where transformers is."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for block in _BLOCK.finditer(text):
        above = "\n" * text.count("\n", 0, block.start(1))  # so that an error names the line of the page
        exec(compile(above + block[1], str(PAGE), "exec"), names)
    assert "parts" in names

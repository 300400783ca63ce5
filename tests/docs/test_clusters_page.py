"""The arithmetic of docs/clusters.md is that of the records; `python tests/docs/test_clusters_page.py` renews it."""

import contextlib
import io
import re
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
PAGE = HOME / "docs" / "clusters.md"
_BLOCKS = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```text\n(?P<said>.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d+\.\d")


def counted(code: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, str(PAGE), "exec"), {"RESULTS": HOME / "results"})
    return said.getvalue()


def test_what_ten_thousand_cells_cost_is_counted_from_the_records() -> None:
    """To a fifth: records are added, and the page is no log of them."""
    found = _BLOCKS.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    now = counted(found["code"])
    assert _NUMBER.sub("", found["said"]).split() == _NUMBER.sub("", now).split()
    numbers = [float(one) for one in _NUMBER.findall(found["said"])]
    assert numbers == [pytest.approx(float(one), rel=0.2, abs=0.1) for one in _NUMBER.findall(now)]
    assert len(numbers) == 9


def renewed(text: str) -> str:
    found = _BLOCKS.search(text)
    assert found is not None
    return f"{text[: found.start('said')]}{counted(found['code'])}{text[found.end('said') :]}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

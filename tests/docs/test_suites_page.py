"""The tables of docs/suites.md are made from the schema, by `python tests/docs/test_suites_page.py`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, SCHEMA = DOCS / "suites.md", DOCS / "suite.schema.json"
BEGIN, END = "<!-- keys -->\n", "<!-- /keys -->\n"
# What a definition of the schema is called in a suite's file, in the order of the page.
PLACES = {
    "": "The file",
    "CostGrid": "An entry of `cost`",
    "AccuracyGrid": "An entry of `accuracy`",
    "ModelOptions": "`model` of an entry of `accuracy`",
    "TrainingOptions": "`training` of an entry of `accuracy`",
    "Tuning": "`tune` of an entry of `accuracy`",
}

Tree = dict[str, Any]


def test_every_key_of_the_schema_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for part in definitions(schema()).values():
        assert [key for key in part["properties"] if f"| `{key}` |" not in text] == []


def test_the_tables_are_those_of_the_schema() -> None:
    assert PAGE.read_text(encoding="utf-8") == renewed(), "run `python tests/docs/test_suites_page.py`"


def schema() -> Tree:
    tree: Tree = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return tree


def definitions(tree: Tree) -> dict[str, Tree]:
    """Every mapping of a suite's file by its name in the schema, the file itself by the empty name."""
    return {"": tree, **tree["$defs"]}


def renewed() -> str:
    """The page with fresh tables."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{head}{BEGIN}{tables(schema())}{END}{rest.partition(END)[2]}"


def tables(tree: Tree) -> str:
    found = definitions(tree)
    assert set(found) == set(PLACES), "PLACES names the definitions of the schema"
    return "\n".join("\n".join(table(PLACES[name], found[name])) + "\n" for name in PLACES) + "\n"


def table(place: str, part: Tree) -> Iterator[str]:
    yield f"## {place}\n"
    yield f"{part['description']}\n"
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    for key, value in part["properties"].items():
        default = "required" if key in part.get("required", ()) else shown(value.get("default"))
        yield f"| `{key}` | {kind(value)} | {default} | {value['description']} |"


def shown(default: Any) -> str:
    if isinstance(default, dict):
        return "its own defaults"
    return "–" if default in ([], "") else f"`{json.dumps(default)}`"


def kind(value: Tree, plural: str = "") -> str:
    """A value's type and bounds in words."""
    if "anyOf" in value:
        return " or ".join(kind(one, plural) for one in value["anyOf"])
    if "$ref" in value:
        return f"mapping{plural}, see below"
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if value["type"] == "array":
        return f"list of {kind(value['items'], 's')}"
    if value["type"] in ("boolean", "null"):
        return {"boolean": "true or false", "null": "null"}[value["type"]]
    name = {"string": "text", "integer": "whole number", "number": "number"}[value["type"]]
    return f"{name}{plural}" + "".join(bounds(value))


def bounds(value: Tree) -> Iterator[str]:
    # The largest whole number is there to keep nonsense out; nobody needs to read it.
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    yield from (f" {word} {value[key]:g}" for key, word in words.items() if key in value and value[key] < 2**31)


if __name__ == "__main__":
    PAGE.write_text(renewed(), encoding="utf-8")

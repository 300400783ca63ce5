"""The tables of docs/suites.md are made from the schema, by `python tests/docs/test_suites_page.py`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, SCHEMA = DOCS / "suites.md", DOCS / "suite.schema.json"
BEGIN, END = "<!-- keys -->\n", "<!-- /keys -->\n"
Tree = dict[str, Any]


def test_every_key_of_the_schema_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tree = schema()
    for part in (tree, *tree["$defs"].values()):
        assert [key for key in part["properties"] if f"| `{key}` |" not in text] == []


def test_the_tables_are_those_of_the_schema() -> None:
    assert PAGE.read_text(encoding="utf-8") == renewed(), "run `python tests/docs/test_suites_page.py`"


def schema() -> Tree:
    tree: Tree = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return tree


def renewed() -> str:
    """The page with fresh tables."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    text = "\n\n".join("\n".join(table(place, part)) for place, part in mappings(schema()))
    return f"{head}{BEGIN}{text}\n{END}{rest.partition(END)[2]}"


def mappings(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """Every mapping of a suite's file once, with the first place where it stands, from the outside in."""
    left, known = [("The file", tree)], list[Tree]()
    while left:
        place, part = left.pop(0)
        if part in known:
            continue
        known.append(part)
        yield place, part
        inside = "" if part is tree else f" of {place[0].lower()}{place[1:]}"
        for key, value in part["properties"].items():
            each = {"array": "An entry of ", "object": "A value of "}.get(value.get("type", ""), "")
            left += [(f"{each}`{key}`{inside}", tree["$defs"][name]) for name in references(value)]


def references(value: Tree) -> Iterator[str]:
    """Names of the definitions that a key's value may be."""
    if "$ref" in value:
        yield value["$ref"].rpartition("/")[2]
    items = [value["items"]] if "items" in value else value.get("patternProperties", {}).values()
    for one in (*value.get("anyOf", ()), *items):
        yield from references(one)


def table(place: str, part: Tree) -> Iterator[str]:
    yield f"## {place}\n"
    yield f"{part['description']}\n"
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    for key, value in part["properties"].items():
        default = "required" if key in part.get("required", ()) else shown(value.get("default"))
        yield f"| `{key}` | {kind(value)} | {default} | {value['description']} |"


def shown(default: Any) -> str:
    if default in ([], "", {}):
        return "–"
    if isinstance(default, dict):
        return "its own defaults"
    return f"`{json.dumps(default)}`"


def kind(value: Tree, plural: str = "") -> str:
    """A value's type and bounds in words."""
    if "anyOf" in value:
        return " or ".join(kind(one, plural) for one in value["anyOf"])
    if "$ref" in value:
        return f"mapping{plural}, see below"
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if value["type"] == "object":
        values = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
        return f"mapping of names to {kind(values[0], 's')}"
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

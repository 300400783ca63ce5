"""What is wrong in a suite, one sentence each, with file, line and key."""

import json
import re
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from grape_bench.claim_check import faults
from grape_bench.errors import UserError, allowed
from grape_bench.expression import canonical
from grape_bench.suite_entry import AccuracyGrid, CostGrid
from grape_bench.suite_format import SuiteFile
from grape_bench.suite_text import Loc, SuiteText, key_path
from grape_bench.suite_values import Plugins

_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list, such as [a, b]",
    "model_type": "a mapping of keys to values",
    "finite_number": "a finite number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_pattern_mismatch": "text of the form {pattern}",
    "string_too_long": "at most {max_length} characters long",
}

_KEY = ("[key]",)  # how pydantic says that the key itself is wrong


def check(text: SuiteText) -> SuiteFile:
    """The suite that a file's values state.

    Raises:
        UserError: one line for each thing that is wrong, `file:line: key: sentence`.
    """
    values = text.values if isinstance(text.values, dict) else {}
    if values is not text.values:
        text.report((), f"must be a mapping of keys to values, not {_shown(text.values)}")
        text.refuse()
    try:
        # As JSON, because only there is pydantic strict about numbers and lenient about lists for tuples.
        suite = SuiteFile.model_validate_json(json.dumps(_whole(values)), strict=True, context=Plugins())
    except ValidationError as error:
        for finding in error.errors(include_url=False):
            loc = tuple(finding["loc"])
            if finding["type"] == "too_short" and text.given(loc):
                continue  # its items are wrong, and have findings of their own
            at = loc[:-1] if loc[-1:] == _KEY else (*loc, *finding.get("ctx", {}).get("at", ()))
            text.report(at, _sentence(finding, loc, text))
        text.refuse()
        raise
    _cross_check(suite, text)
    text.refuse()
    return suite


def _cross_check(suite: SuiteFile, text: SuiteText) -> None:
    grids: list[tuple[Loc, CostGrid | AccuracyGrid]] = []
    grids += [(("cost", index), grid) for index, grid in enumerate(suite.cost)]
    grids += [(("accuracy", index), grid) for index, grid in enumerate(suite.accuracy)]
    for loc, grid in grids:
        for item, name in enumerate(grid.encodings):
            if name not in suite.encodings:
                sentence = f"{name!r} is not among the suite's encodings.{allowed(name, suite.encodings)}"
                text.report((*loc, "encodings", item), sentence)
    if not suite.cost and not suite.accuracy:
        text.report((), "there is nothing to measure; give 'cost', 'accuracy' or both")
    for at, sentence in faults(suite):
        text.report(at, sentence)
    for name in suite.sizes if not text.problems else ():
        try:
            for at, sentence in faults(at_size(suite, name, text.source)):
                text.report(("sizes", name), f"{key_path(at)}: {sentence}")
        except ValidationError as error:
            for finding in error.errors(include_url=False):
                sentence = str(finding.get("ctx", {}).get("sentence", finding["msg"]))
                text.report(("sizes", name, *finding["loc"]), sentence)


def at_size(suite: SuiteFile, name: str, source: str) -> SuiteFile:
    """The suite with its trainings at one of its sizes.

    Raises:
        UserError: it has no such size.
        ValidationError: the size does not fit the entries.
    """
    if name not in suite.sizes:
        raise UserError(f"{source}: the suite has no size {name!r}.{allowed(name, suite.sizes)}")
    entries = tuple(map(suite.sizes[name].of, suite.accuracy))
    return suite.model_copy(update={"title": f"{suite.title}, size {name}", "accuracy": entries})


def _whole(value: Any) -> Any:
    """`1e4` is a whole number for a key that wants one."""
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else canonical(value)


def _sentence(finding: Any, loc: Loc, text: SuiteText) -> str:
    """A finding of pydantic in the words of a suite."""
    kind, ctx = finding["type"], finding.get("ctx", {})
    if kind == "suite":
        return str(ctx["sentence"])
    if kind == "missing":
        return "this key is missing"
    if kind == "extra_forbidden":
        return f"there is no key {loc[-1]!r} here.{allowed(str(loc[-1]), _model_at(loc[:-1]).model_fields)}"
    if kind in ("too_short", "string_too_short"):
        return "is empty; give at least one" if kind == "too_short" else "is empty"
    given = loc[-2] if loc[-1:] == _KEY else text.given(loc)
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", ctx["expected"])
        return f"{_shown(given)} is not allowed.{allowed(str(given), known)}"
    if kind not in _KINDS:
        return f"{finding['msg']}, given {_shown(given)}"
    hint = "; put it in quotes" if kind == "string_type" and isinstance(given, int | float) else ""
    return f"must be {_KINDS[kind].format(**_whole(ctx))}, not {_shown(given)}{hint}"


def _model_at(loc: Loc) -> type[BaseModel]:
    model: type[BaseModel] = SuiteFile
    for key in loc:
        if isinstance(key, str) and key in model.model_fields:  # the name of a size is no field
            annotation = model.model_fields[key].annotation
            model = next(one for one in (annotation, *get_args(annotation)) if isinstance(one, type))
    return model


def _shown(value: Any) -> str:
    """A value as YAML writes it, shortened."""
    match value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            text = f"the text {value!r}"
        case _:
            text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

"""YAML 1.2 text to plain values, with the line of every key and item."""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from grape_bench.errors import UserError
from grape_bench.suite_text import Loc, Place, SuiteText

_DEEPEST = 20  # levels; a suite needs four


def parse_text(text: str, source: str) -> SuiteText:
    """Read YAML 1.2's core: words, numbers, `true`, `false`, `null`, lists and mappings; no aliases and no tags.

    Args:
        text: of the file.
        source: the file's name for messages.

    Raises:
        UserError: the text is not YAML, or uses an alias; it names file and line.
    """
    found = SuiteText(source)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UserError(f"{source}:{mark.line + 1 if mark else 1}: {_broken(error)}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(f"{source}:{line}: the character {chr(error.character)!r} is not allowed in YAML") from None
    except RecursionError:
        raise UserError(f"{source}: nested too deeply") from None
    return dataclasses.replace(found, values=_value(node, (), found))


class _Loader(yaml.SafeLoader):
    """YAML without aliases, its words read as YAML 1.2 reads them."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not allowed; write the value out", mark)
        return super().compose_node(parent, index)


# PyYAML follows YAML 1.1, which reads 1e4 as a word, `no` as false, 010 as 8 and 1:30 as 90.
_Loader.yaml_implicit_resolvers = {}
_TAG = "tag:yaml.org,2002:"
_READERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "null": lambda text: None,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": lambda text: math.nan if text.lower() == ".nan" else float(re.sub(r"(?i)\.inf", "inf", text)),
}
for _name, _pattern, _first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]{1,300}$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
    ("float", r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", list("-+.")),
):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(_pattern), _first)


def _broken(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "broken"
    if "aliases" in problem:
        return problem
    hint = "; indent with spaces, not tabs" if "'\\t'" in problem else ""
    context = f" {error.context}," if error.context else ""
    return f"this is not YAML:{context} {problem}{hint}"


def _value(node: Any, loc: Loc, found: SuiteText) -> Any:
    if len(loc) > _DEEPEST:
        found.report(loc[:_DEEPEST], "nested too deeply")
    elif isinstance(node, yaml.MappingNode):
        return {key: _value(one, (*loc, key), found) for key, one in _entries(node, loc, found)}
    elif isinstance(node, yaml.SequenceNode):
        for index, one in enumerate(node.value):
            found.places[*loc, index] = _place(one)
        return [_value(one, (*loc, index), found) for index, one in enumerate(node.value)]
    elif node is not None:
        return _scalar(node, loc, found)
    return None


def _entries(node: yaml.MappingNode, loc: Loc, found: SuiteText) -> Iterator[tuple[str, Any]]:
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name is None:
            found.report_at(_place(key), loc, "a key must be a word")
        elif (*loc, name) in found.places:
            first = found.places[*loc, name].line
            found.report_at(_place(key), (*loc, name), f"is given twice, first in line {first}")
        else:
            found.places[*loc, name] = _place(key)
            yield name, value


def _scalar(node: Any, loc: Loc, found: SuiteText) -> Any:
    if node.tag == f"{_TAG}null" and not node.value:
        found.report(loc, "has no value; give one or remove the key" if loc else "the file is empty")
        return None
    try:
        node.value.encode()  # "\ud800" is half a character
        return _READERS[node.tag.removeprefix(_TAG)](node.value)
    except KeyError:
        found.report(loc, f"the tag {node.tag} is not allowed; write plain words, numbers and lists")
    except ValueError:
        found.report(loc, f"{node.value!r} cannot be read")
    return None


def _place(node: Any) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)

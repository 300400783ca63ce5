"""Tables of what there is: plug-ins with their options and declared facts, and suites."""

from typing import Any

from tabulate import tabulate

from grape_bench.errors import UserError
from grape_bench.expression import canonical
from grape_bench.registry import Option, Registry
from grape_bench.suite import expand, group, load
from grape_bench.suite_files import all_files

_FACTS = {
    "encodings": ("domain", "group", "laws"),
    "tasks": ("headline",),
    "metrics": ("unit", "better", "scopes", "derived_from"),
}
_WIDEST = 60  # characters of a summary's line


def plugin_table(kind: str) -> str:
    """A row for each plug-in of a kind, with what is wrong in one from outside. Runs none of them."""
    facts, registry = _FACTS.get(kind, ()), Registry(kind)
    rows = [_row(name, registry, facts) for name in registry]
    optional = any(row[1] for row in rows)
    headers = ["name", *(["options"] if optional else []), *(one.replace("_", " ") for one in facts), "what it is"]
    body = [row if optional else [row[0], *row[2:]] for row in rows]
    return tabulate(body, headers, maxcolwidths=[None] * (len(headers) - 1) + [_WIDEST], disable_numparse=True)


def suite_table() -> str:
    """A row for each suite of the working directory, those with errors included."""
    rows = []
    for path in all_files():
        try:
            suite = load(path)
            cells = expand(suite)
            rows.append([str(path), suite.title, len(cells), len(group(cells, suite.baseline, suite.vary))])
        except UserError:
            rows.append([str(path), f"has errors, see `grape-bench check {path}`", None, None])
    return tabulate(rows, ["suite", "title", "cells", "blocks"])


def _row(name: str, registry: Registry, facts: tuple[str, ...]) -> list[str]:
    try:
        plugin = registry[name]
    except UserError as error:
        return [name, "", *("" for _ in facts), str(error)]
    inner = ["expression"] if plugin.wraps else []
    options = ", ".join([*inner, *map(_option, plugin.options.values())])
    return [name, options, *(_shown(plugin.facts.get(one)) for one in facts), plugin.summary]


def _option(option: Option) -> str:
    return option.name if option.required else f"{option.name}={canonical(option.default)!r}"


def _shown(fact: Any) -> str:
    return ", ".join(map(str, fact)) if isinstance(fact, tuple | list) else str(fact or "")

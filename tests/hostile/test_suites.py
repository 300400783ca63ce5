"""Suites that are broken or meant ill: a sentence or a plan, within two seconds."""

import contextlib
import json
import os
import random
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from grape_bench.cell import Block
from grape_bench.errors import UserError
from grape_bench.suite import expand, group, load

SUITES = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parents[2].glob("suites/*.yaml"))]
TREES = [yaml.safe_load(text) for text in SUITES]
WORDS = (
    "''", "~", "[]", "{}", "[[[[]]]]", "&a [*a]", "*a", "<<: *a", "!!python/object/apply:os.system [touch owned]",
    "!!python/name:os.system", "!!binary aGk=", "!!set {a, b}", "1e400", "-1e400", ".inf", ".nan", "0", "-1", "0x10",
    "9" * 400, "9" * 5000, "1" + "0" * 30, "1e-400", "2147483648", "true", "null", "'\\ud800'", '"\\ud800"', '"\\0"',
    "\u202e", "é" * 300, "../../etc/passwd", "a: b: c", "- - -", "? [a]", "|", ">-", "%YAML 1.1", "---", "...", "@",
    "`", "rope" + "(" * 60, "rope + " * 200 + "rope", "rope(base=10**100**100)", "[" * 3000, "{a: " * 100, "\x07",
    "\x85", "\ufeff",
)  # fmt: skip
VALUES = (
    None, True, -1, 0, 1, 2**31, 2**63, 10**400, 1e308, 5e-324, -0.0, "", " ", "x" * 5000, "\x00", "no", "1e9", [],
    [[]], {}, {"a": 1}, [1, "1"], [None], list(range(1, 400)), ["rope", "rope"], "rope(base=1e400)",
    "__import__('os').system('true')", ["none"] * 300, "a@b", "../x", "rope + alibi(form='x')", "4x", "lambda: 0",
    [{}], 1.5, "\U0001f600",
)  # fmt: skip


def mutated(text: str, chance: random.Random) -> bytes:
    """A suite's text with a few wounds, line by line or character by character."""
    for _ in range(chance.randint(1, 4)):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        key, colon, _ = lines[at].partition(":")
        lines[at : at + 1] = chance.choice(
            [
                [f"{key}{colon} {chance.choice(WORDS)}"],
                [lines[at], lines[at]],
                [],
                [chance.choice(WORDS)],
                [" " * chance.randint(1, 3) + lines[at]],
                ["\t" + lines[at]],
                [lines[at][: chance.randint(0, len(lines[at]))]],
                [lines[at], chance.choice(lines)],
            ]
        )
        text = "\n".join(lines)
        spot = chance.randint(0, len(text))
        if chance.random() < 0.3:
            text = text[:spot] + chance.choice(WORDS) + text[spot + chance.randint(0, 5) :]
    data = text.encode("utf-8", "surrogatepass")
    return chance.choice([data, data, data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + data, data[: len(data) // 2]])


def twisted(tree: object, chance: random.Random) -> bytes:
    """A suite whose YAML is sound, with wrong values at random places."""
    tree = json.loads(json.dumps(tree))
    for _ in range(chance.randint(1, 3)):
        node = tree
        while isinstance(node, dict | list) and node:
            key = chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if chance.random() < 0.4 or not isinstance(node[key], dict | list):
                break
            node = node[key]
        if isinstance(node, dict | list) and node:
            if chance.random() < 0.15 and isinstance(node, dict):
                node[str(chance.choice(VALUES))] = node.pop(key)
            else:
                node[key] = chance.choice(VALUES)
    return json.dumps(tree, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


@settings(settings.get_profile("hostile"), max_examples=300)
@given(seed=st.integers(0, 2**32), which=st.integers(0, 100))
def test_a_wounded_suite_is_checked_or_refused(sandbox, seed: int, which: int) -> None:
    _check(sandbox, mutated(SUITES[which % len(SUITES)], random.Random(seed)))


@settings(settings.get_profile("hostile"), max_examples=300)
@given(seed=st.integers(0, 2**32), which=st.integers(0, 100))
def test_a_suite_with_wrong_values_is_checked_or_refused(sandbox, seed: int, which: int) -> None:
    _check(sandbox, twisted(TREES[which % len(TREES)], random.Random(seed)))


@settings(settings.get_profile("hostile"), max_examples=100)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_checked_or_refused(sandbox, data: bytes) -> None:
    _check(sandbox, data)


def _check(sandbox, data: bytes) -> None:
    path = sandbox.folder / "fuzzed.yaml"
    path.write_bytes(data)
    try:
        sandbox.call(lambda: _blocks(path))
    except UserError as error:
        said = str(error).splitlines()
        assert all(line.startswith(str(path)) for line in said), "each sentence names the file"
    assert not (sandbox.folder / "owned").exists()


def _blocks(path: Path) -> list[Block]:
    suite = load(path)
    return group(expand(suite), suite.baseline, suite.vary)


HEAD = "title: Large\nencodings: [none, rope]\n"
GRID = HEAD + "cost:\n  - {{lengths: {}, batch: {}, metrics: [forward_ms]}}"
GOOD = "- {lengths: [8], metrics: [forward_ms]}\n"
STRANGE = "- {lengths: [8], metrics: [forward_ms], encodings: [ropf]}\n"
DECODING = "title: x\nencodings: [dynamic_ntk]\ncost:\n- {{lengths: {}, batch: {}, metrics: [decode_ms]}}\n"
SKIP = "skips:\n- {only: [encoding=dynamic_ntk], reason: r}\n"
COMMENT = "# grape-bench: ignore[GB121] meant\n"
CLAIM = "- {id: a, says: b, relation: above, metric: forward_ms, encodings: [rope], against: [nome]}\n"


def numbered(letter: str, count: int) -> str:
    return ", ".join(f"{letter}{index}" for index in range(count))


LARGE = {
    "bomb": "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 200)),
    "a million cells": GRID.format(list(range(1, 708)), list(range(1, 708))),
    "as many cells as there may be": GRID.format(list(range(1, 51)), list(range(1, 201))),
    "many seeds": f"{HEAD}seeds: {list(range(9000))}\naccuracy:\n  - {{task: registers, train_length: 8}}",
    "empty keys": "".join(f"k{index}:\n" for index in range(8000)),
    "one key": "k: 1\n" * 12_000,
    "strange encodings": f"title: x\nencodings: [{numbered('e', 9000)}]\n",
    "grids of strange encodings": f"{HEAD}cost:\n{STRANGE * 1000}",
    "strange metrics": f"{HEAD}cost:\n- {{lengths: [8], metrics: [{numbered('m', 8000)}]}}",
    "brackets": "[" * 60_000,
    "dashes": "- " * 30_000,
    "words": "title: " + "x " * 30_000,
    "a number": f"title: x\nseeds: [{'9' * 60_000}]",
    "a comment": "#" * 2**21,
    "sums": f"{HEAD}baseline: {'none + ' * 8000}none",
    "filters": f"{HEAD}cost:\n{GOOD}skips:\n- {{only: [{numbered('length=', 4000)}], reason: r}}",
    "skips of many cells": f"{DECODING.format(list(range(1, 51)), list(range(1, 101)))}{SKIP}",
    "comments": f"{HEAD}cost:\n{GOOD}{COMMENT * 1500}",
    "claims": f"{HEAD}cost:\n{GOOD}claims:\n{CLAIM * 600}",
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_suite_is_checked_or_refused_in_time(sandbox, name: str) -> None:
    _check(sandbox, LARGE[name].encode())


@pytest.mark.parametrize("name", LARGE)
def test_the_command_says_so_in_time(sandbox, name: str) -> None:
    path = sandbox.folder / "large.yaml"
    path.write_text(LARGE[name], encoding="utf-8")
    code, out, err = sandbox.command("check", str(path))
    assert (code, "cells in" in out) == (0, True) or (code == 2 and str(path) in err)


NAMES = ("", "é.yaml", "a b.yaml", "x" * 300 + ".yaml", "nul\0.yaml", "\udcff.yaml", "..", "-")


@pytest.mark.parametrize("name", NAMES)
def test_a_strange_name_is_read_or_refused(sandbox, name: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        (sandbox.folder / name).write_text(SUITES[0], encoding="utf-8")
    code, out, err = sandbox.command("check", name)
    assert (code, bool(out), bool(err)) in ((0, True, False), (2, False, True))


def test_a_suite_in_a_strange_folder_is_read(sandbox) -> None:
    """Its path is no UTF-8, and is printed."""
    folder = sandbox.folder / "\udcff"
    folder.mkdir()
    (folder / "good.yaml").write_text(SUITES[0], encoding="utf-8")
    code, out, _ = sandbox.command("check", str(folder / "good.yaml"))
    assert (code, "ok" in out) == (0, True)


def test_a_pipe_a_folder_and_a_device_are_refused(sandbox) -> None:
    os.mkfifo(sandbox.folder / "pipe.yaml")
    (sandbox.folder / "folder.yaml").mkdir()
    (sandbox.folder / "loop.yaml").symlink_to("loop.yaml")
    for name in ("pipe.yaml", "folder.yaml", "loop.yaml", "/dev/zero"):
        assert sandbox.command("check", name)[0] == 2

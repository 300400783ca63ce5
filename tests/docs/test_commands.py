"""Every command in README.md and docs/, typed as it stands there.

A fenced block says in its first line what becomes of it:

    console                 typed in a copy of the project; each line after `$ ` must end with exit code 0
    console exits=0,3       the same, with these exit codes allowed
    console long            not run: its words must parse, and its files must be there
    python file=PATH        written to PATH of the copy, for the commands below it; so is any other language
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from grape_bench.arguments import parse

HOME = Path(__file__).resolve().parents[2]
PAGES = [HOME / "README.md", *sorted((HOME / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(?P<info>\S[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"[\w./-]+\.(ya?ml|txt|toml|ini)")
_LIMIT_S = 300


class Block(NamedTuple):
    """A fenced block, and where it begins."""

    line: int
    words: tuple[str, ...]
    body: str

    @property
    def options(self) -> dict[str, str]:
        return {key: value for key, _, value in (word.partition("=") for word in self.words[1:])}

    @property
    def commands(self) -> list[str]:
        return [line.removeprefix("$ ") for line in self.body.splitlines() if line.startswith("$ ")]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        yield Block(text.count("\n", 0, found.start()) + 1, tuple(found["info"].split()), found["body"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what commands look at, with a `grape-bench` that runs the copy."""
    for name in ("grape_bench", "suites"):
        shutil.copytree(HOME / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    program = tmp_path / "bin" / "grape-bench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m grape_bench "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(HOME).as_posix())
def test_what_a_page_says_works(page: Path, project: Path) -> None:
    for block in blocks(page):
        if "file" in block.options:
            (project / block.options["file"]).write_text(block.body, encoding="utf-8")
        elif block.words[0] == "console":
            assert block.commands, f"{page.name}:{block.line}: no line of this block begins with `$ `"
            for command in block.commands:
                check = parses if "long" in block.words else ends_well
                check(command, block, project)


def ends_well(command: str, block: Block, project: Path) -> None:
    path = os.pathsep.join([str(project / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(project)}
    done = subprocess.run(
        ["bash", "-c", command], cwd=project, env=environment, capture_output=True, text=True, timeout=_LIMIT_S
    )
    said = f"line {block.line}: {command}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
    assert str(done.returncode) in block.options.get("exits", "0").split(","), said
    assert "Traceback" not in done.stderr, said


def parses(command: str, block: Block, project: Path) -> None:
    words = shlex.split(command, comments=True)
    for word in words:
        if _FILE.fullmatch(word):
            assert (HOME / word).is_file() or (project / word).is_file(), f"line {block.line}: there is no {word}"
    programs = [index for index, word in enumerate(words) if Path(word).name == "grape-bench"]
    for index in programs:
        end = next((at for at in range(index, len(words)) if words[at] in ("&&", "|", ">", ";")), len(words))
        parse(words[index + 1 : end])


def test_readme_gives_its_two_commands_in_one_line_each() -> None:
    first, second = [block.commands for block in blocks(PAGES[0]) if "long" in block.words][:2]
    assert len(first) == len(second) == 1
    assert first[0].endswith("grape-bench suites/quick.yaml")
    assert second[0].endswith("/tox")

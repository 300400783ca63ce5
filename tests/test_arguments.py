"""The words of the command line, in a process of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from grape_bench import __version__, cli
from grape_bench.commands import COMMANDS


def program(*words: str) -> "subprocess.CompletedProcess[str]":
    home = Path(cli.__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(home)!r}); from grape_bench.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [[], ["--nonsense"], ["run"], ["list", "colours"], ["run", "x", "--effort", "most"]])
def test_wrong_words_are_exit_code_2(words: list[str]) -> None:
    done = program(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: grape-bench")


def test_the_version_is_the_packages() -> None:
    assert program("--version").stdout == f"grape-bench {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_every_option_has_help(command: str) -> None:
    done = program(command, "--help")
    assert done.returncode == 0
    options = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    # an option without help is alone on its line, with no indented line after it
    for line, following in zip(options, [*options[1:], ""], strict=True):
        bare = line.startswith("  -") and "  " not in line.strip()
        assert not bare or following.startswith("      ")


def test_a_traceback_is_no_answer_to_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("title: x\nencodings: [roope]\n")
    done = program("check", str(tmp_path / "bad.yaml"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_enough_is_no_error() -> None:
    home = Path(cli.__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(home)!r}); from grape_bench.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


def test_help_imports_neither_torch_nor_pydantic() -> None:
    home = Path(cli.__file__).parents[1]
    code = (
        f"import sys; sys.path.insert(0, {str(home)!r}); from grape_bench import cli, arguments; "
        "arguments.make_parser().format_help(); assert not {'torch', 'pydantic', 'yaml'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

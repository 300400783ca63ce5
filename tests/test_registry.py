"""A folder is a registry: files are read without being run."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from grape_bench import registry as module
from grape_bench.errors import UserError
from grape_bench.registry import KINDS, Option, Registry

CONTRACT = (
    'class Base:\n    version = 1\n    domain = "both"\n    laws: tuple[str, ...] = ()\n    computed = len("x")\n'
)
ROPE = '''
import nothing_of_this_name
from grape_bench.encodings import Base


class Middle(Base):
    domain = "causal"

    def __init__(self, site, *, base: float = 10_000.0, form: Literal["a", "b"] = "a", odd=None, must: int):
        pass


class Rope(Middle):
    """Turn each pair
    of channels.

    More.
    """

    version = 7
    laws = ("relative",)
    undone: int


PLUGIN = Rope
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "encodings"
    made.mkdir()
    (made / "__init__.py").write_text(CONTRACT)
    (made / "rope.py").write_text(ROPE)
    (made / "_shared.py").write_text("")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "registry.py"))
    return made


def test_a_file_is_a_plugin_of_its_name(folder: Path) -> None:
    (folder / "box.py").write_text("class Box:\n    pass\n\n\nPLUGIN = Box\n")
    assert list(Registry("encodings")) == ["box", "rope"]


def test_options_and_facts_are_read_without_running_the_file(folder: Path) -> None:
    plugin = Registry("encodings")["rope"]
    assert plugin.options == {
        "base": Option("base", "float", 10_000.0),
        "form": Option("form", "Literal['a', 'b']", "a"),
        "odd": Option("odd", "object", None),
        "must": Option("must", "int", None, required=True),
    }
    assert plugin.facts == {"version": 7, "domain": "causal", "laws": ("relative",)}
    assert (plugin.summary, plugin.version, plugin.wraps) == ("Turn each pair of channels.", "7", False)


def test_what_is_computed_anew_is_no_fact_any_more(folder: Path) -> None:
    (folder / "less.py").write_text("class Less(Base):\n    domain = choose()\n\n\nPLUGIN = Less\n")
    assert Registry("encodings")["less"].facts == {"version": 1, "laws": ()}


@pytest.mark.parametrize(
    "head",
    [
        "from grape_bench.encodings.rope import Rope\nclass Mine(Rope):",
        "from grape_bench.encodings.rope import Rope as Turning\nclass Mine(Turning):",
        "from grape_bench.encodings.rope import Rope\nclass Between(Rope): 0\nclass Mine(Unknown, Between):",
    ],
)
def test_a_file_inherits_from_those_beside_it_that_it_imports(folder: Path, head: str) -> None:
    (folder / "mine.py").write_text(f"{head}\n    version = 8\n\n\nPLUGIN = Mine\n")
    mine, rope = (Registry("encodings")[name] for name in ("mine", "rope"))
    assert mine.options == rope.options
    assert mine.facts == rope.facts | {"version": 8}


def test_the_docstring_says_where_the_idea_is_from(folder: Path) -> None:
    (folder / "told.py").write_text('class T:\n    """One.\n\n    Source: a\n    paper.\n    """\n\n\nPLUGIN = T\n')
    assert Registry("encodings")["told"].source == "a paper."
    assert Registry("encodings")["rope"].source == ""


def test_a_plugin_that_takes_an_inner_one_wraps(folder: Path) -> None:
    (folder / "wrap.py").write_text("class W:\n    def __init__(self, site, inner):\n        pass\n\n\nPLUGIN = W\n")
    assert Registry("encodings")["wrap"].wraps


def test_an_unknown_name_suggests_the_nearest(folder: Path) -> None:
    with pytest.raises(UserError, match=r"there is no encoding named 'roop'\. Did you mean 'rope'"):
        Registry("encodings")["roop"]
    assert "roop" not in Registry("encodings")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("class X(:\n    pass\n", r"bad\.py:1: this plug-in is not Python"),
        ("class X:\n    pass\n", r"bad\.py: its last line must be `PLUGIN = Class`"),
        ("PLUGIN = Elsewhere\n", r"bad\.py: its last line must be `PLUGIN = Class`"),
        (
            "class X:\n    def __init__(self, *, a: float = math.pi):\n        pass\n\n\nPLUGIN = X\n",
            r"bad\.py:2: the default of 'a' must be a literal",
        ),
    ],
)
def test_a_broken_plugin_is_named(folder: Path, text: str, error: str) -> None:
    (folder / "bad.py").write_text(text)
    with pytest.raises(UserError, match=error):
        dict(Registry("encodings"))


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        ("float", [1, 1.5], [True, "1", None, (1,)]),
        ("int", [1, -1], [1.5, True, "1"]),
        ("bool", [True], [1, "true"]),
        ("str", ["x"], [1]),
        ("int | None", [None, 3], [1.5, "x"]),
        ("Literal['a', 'b']", ["a"], ["c", 1]),
        ("Literal[1, 2]", [1], [True, 3, "1"]),
        ("Literal['a']", ["a"], ["b"]),
        ("tuple[int, ...]", [(), (1, 2), [3]], [1, (1, 2.5)]),
        ("tuple[int, str]", [(1, "x")], [(1,), ("x", 1), (1, "x", 2)]),
        ("Anything", [1, "x", None], []),
    ],
)
def test_an_option_accepts_what_its_annotation_says(annotation: str, good: list[object], bad: list[object]) -> None:
    option = Option("x", annotation)
    assert all(option.accepts(value) for value in good)
    assert not any(option.accepts(value) for value in bad)


@pytest.mark.parametrize("kind", KINDS)
def test_every_plugin_of_the_package_says_what_it_is(kind: str) -> None:
    plugins = Registry(kind)
    assert len(plugins)
    assert all(plugin.summary.endswith(".") for plugin in plugins.values())


@pytest.mark.parametrize("kind", KINDS)
def test_the_facts_read_are_those_of_the_loaded_class(kind: str) -> None:
    for plugin in Registry(kind).values():
        if (needs := str(plugin.facts.get("needs", ""))) and find_spec(needs) is None:
            continue  # the tests of `tox -e ray` load it
        loaded = plugin.load()
        assert {key: getattr(loaded, key) for key in plugin.facts} == plugin.facts

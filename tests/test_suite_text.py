"""YAML with lines: what is read, what is refused, and where errors point."""

import math
from pathlib import Path

import pytest

from grape_bench.errors import UserError
from grape_bench.suite_text import LARGEST, Place, key_path, read_text, suite_name
from grape_bench.suite_yaml import parse_text


def refusal(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_text(text, "x.yaml").refuse()
    return str(caught.value)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e4", 10_000.0),
        ("6e-3", 0.006),
        ("-1.5E+2", -150.0),
        (".5", 0.5),
        ("7", 7),
        ("-3", -3),
        ("010", 10),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("none", "none"),
        ("'1e4'", "1e4"),
        ("null", None),
        ("~", None),
        ("rope + fourier", "rope + fourier"),
        ("größe", "größe"),
    ],
)
def test_words_are_read_as_yaml_1_2_reads_them(word: str, value: object) -> None:
    found = parse_text(f"key: {word}", "x.yaml").values["key"]
    assert (found, type(found)) == (value, type(value))


def test_not_a_number_is_a_float() -> None:
    assert math.isnan(parse_text("key: .nan", "x.yaml").values["key"])


def test_every_key_and_item_has_its_place() -> None:
    text = parse_text("a: 1\nb:\n  - x: 1\n    y: [7,\n      8]\n", "x.yaml")
    assert text.values == {"a": 1, "b": [{"x": 1, "y": [7, 8]}]}
    assert text.place(("b",)) == Place(2, 1)
    assert text.place(("b", 0, "y")) == Place(4, 5)
    assert text.place(("b", 0, "y", 1)) == Place(5, 7)


def test_a_missing_place_is_the_nearest_around_it() -> None:
    assert parse_text("a: 1\nb: {c: 2}\n", "x.yaml").place(("b", "z", 3)).line == 2


def test_a_key_path_reads_as_people_write_it() -> None:
    assert key_path(("cost", 0, "lengths", 2)) == "cost[0].lengths[2]"


def test_a_duplicate_key_names_both_lines() -> None:
    assert refusal("a: 1\nb: 2\na: 3\n") == "x.yaml:3: a: is given twice, first in line 1"


def test_an_empty_key_is_refused() -> None:
    assert refusal("a: 1\nb:\n") == "x.yaml:2: b: has no value; give one or remove the key"


def test_all_problems_come_together_in_the_order_of_the_file() -> None:
    assert [line.split(": ")[0] for line in refusal("a:\nb: 1\nb: 2\nc:\n").splitlines()] == [
        "x.yaml:1",
        "x.yaml:3",
        "x.yaml:4",
    ]


def test_many_problems_are_cut_short() -> None:
    lines = refusal("".join(f"k{index}:\n" for index in range(80))).splitlines()
    assert len(lines) == 51
    assert lines[-1] == "x.yaml: and 30 more"


def test_an_alias_is_refused() -> None:
    assert refusal("a: &x [1]\nb: *x\n").startswith("x.yaml:2: aliases (*name) are not allowed")


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
    assert "aliases" in refusal(bomb)


@pytest.mark.parametrize("text", ["[" * 50_000, "- " * 50_000, "a: " + "[" * 30 + "]" * 30])
def test_deep_nesting_is_refused(text: str) -> None:
    assert "nested too deeply" in refusal(text)


def test_a_tag_is_refused() -> None:
    assert "tag" in refusal("a: !!python/object/apply:os.system [ls]\nb: !x y\n")


def test_broken_yaml_names_its_line() -> None:
    assert refusal("a: 1\nb: [1, 2\nc: 3\n").startswith("x.yaml:3: this is not YAML")


def test_a_tab_is_explained() -> None:
    assert "not tabs" in refusal("a:\n\t- 1\n")


def test_two_documents_are_refused() -> None:
    assert refusal("a: 1\n---\nb: 2\n").startswith("x.yaml:2: this is not YAML")


def test_a_control_character_names_its_line() -> None:
    assert refusal("a: 1\nb: \x07\n") == "x.yaml:2: the character '\\x07' is not allowed in YAML"


def test_half_a_character_is_refused() -> None:
    assert "cannot be read" in refusal('a: "\\ud800"\n')


@pytest.mark.parametrize("key", ["[1, 2]", "{a: 1}"])
def test_a_key_must_be_a_word(key: str) -> None:
    assert "a key must be a word" in refusal(f"? {key}\n: 1\n")


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: [x,\r\n  y]\r\n")
    text = parse_text(read_text(path), "x.yaml")
    assert text.values == {"a": 1, "b": ["x", "y"]}
    assert text.place(("b", 1)).line == 3


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: 1\nb: \xff\xfe\x00")
    with pytest.raises(UserError, match=r"x\.yaml:2: byte 0xff is not UTF-8"):
        read_text(path)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(UserError, match="too large"):
        read_text(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_text(tmp_path / "x.yaml")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"):
        read_text(tmp_path)


@pytest.mark.parametrize("stem", ["a b", "quick[1]", "*", "-x"])
def test_a_suite_is_not_named_what_makes_a_poor_file_name(stem: str) -> None:
    with pytest.raises(UserError, match="file name"):
        suite_name(Path(f"{stem}.yaml"))

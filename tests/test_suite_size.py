"""Sizes: what they replace, where they are asked for, and that each is checked."""

from pathlib import Path

import pytest

from grape_bench.bundle import differences
from grape_bench.errors import UserError
from grape_bench.suite import Suite, expand, load, parse
from grape_bench.suite_files import by_name, load_all, recorded

TEXT = """title: t
encodings: [rope, alibi]
seeds: [3]
accuracy:
  - name: plain
    task: registers
    train_length: 64
    test_lengths: [64, 128]
  - name: mixed
    task: registers
    train_length: 64
    test_lengths: [64, 128]
    model: {layers: 3}
    training: {shortest: 28, batch: 8}
sizes:
  gpu:
    train_length: 512
    test_lengths: [512, 1024]
    model: {width: 128}
    training: {steps: 50, batch: 64}
claims:
  - {id: A, says: so, relation: above, encodings: [rope], against: [alibi], entry: mixed, at: 2x}
"""


def made(size: str, text: str = TEXT) -> Suite:
    return parse(text, f"suites/t@{size}.yaml" if size else "suites/t.yaml")


def test_a_size_replaces_what_it_names_and_nothing_else() -> None:
    plain, mixed = made("gpu").accuracy
    assert (plain.train_length, plain.test_lengths, plain.name) == (512, (512, 1024), "plain")
    assert plain.model.model_dump(exclude_defaults=True) == {"width": 128}
    assert plain.training.model_dump(exclude_defaults=True) == {"steps": 50, "batch": 64}
    assert mixed.model.model_dump(exclude_defaults=True) == {"width": 128, "layers": 3}
    assert mixed.training.model_dump(exclude_defaults=True) == {"steps": 50, "batch": 64, "shortest": 28}


def test_sizes_change_no_cell_of_the_suite_itself() -> None:
    without = TEXT.partition("sizes:")[0]
    assert [one.id for one in expand(made(""))] == [one.id for one in expand(made("", without))]
    assert not {one.id for one in expand(made(""))} & {one.id for one in expand(made("gpu"))}


def test_a_size_is_part_of_the_name_and_of_the_title() -> None:
    assert (made("gpu").name, made("gpu").title) == ("t@gpu", "t, size gpu")
    assert (made("").name, made("").title) == ("t", "t")


def test_an_unknown_size_names_those_there_are() -> None:
    with pytest.raises(UserError, match=r"suites/t@gup\.yaml: the suite has no size 'gup'\. Did you mean 'gpu'\?"):
        made("gup")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            ("{steps: 50,", "{stps: 50,"),
            "t.yaml:20: sizes.gpu.training.stps: there is no key 'stps' here. Did you mean",
        ),
        (("[512, 1024]", "[1024]"), "t.yaml:18: sizes.gpu.test_lengths: the training length 512 must be among"),
        (("width: 128", "width: 130"), "t.yaml:19: sizes.gpu.model: width 130 does not divide into 4 heads"),
        (("[512, 1024]", "[512, 1025]"), "t.yaml:16: sizes.gpu: claims[0].at: no entry of the suite measures that"),
        (("  gpu:", "  big one:"), "t.yaml:16: sizes.big one: must be text of the form"),
    ],
)
def test_every_size_is_checked_with_the_suite(wrong: tuple[str, str], said: str) -> None:
    with pytest.raises(UserError) as caught:
        made("", TEXT.replace(*wrong))
    assert said in str(caught.value)


def test_a_size_is_asked_for_by_a_word_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("suites").mkdir()
    Path("suites/t.yaml").write_text(TEXT, encoding="utf-8")
    assert by_name("t@gpu") == "suites/t@gpu.yaml"
    assert [one.name for one in load_all(["suites/t.yaml", "suites/t@gpu.yaml"])] == ["t", "t@gpu"]
    assert load(Path("suites/t@gpu.yaml")).accuracy[0].train_length == 512
    assert recorded(["t@gpu", "other", "t"]) == [Path("suites/t.yaml"), Path("suites/t@gpu.yaml")]


def test_a_bundle_knows_the_size_of_a_suite_that_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("suites").mkdir()
    Path("suites/t.yaml").write_text(TEXT, encoding="utf-8")
    assert differences(made("gpu")) == ()
    changed = made("gpu", TEXT.replace("steps: 50", "steps: 60"))
    assert differences(changed) == ("accuracy differs from that of t@gpu.yaml", "sizes differs from that of t@gpu.yaml")

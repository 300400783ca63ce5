"""`grape-bench verify`: declared laws against measured ones, records, and the map."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grape_bench import catalogue, cli
from grape_bench.environment import Environment
from grape_bench.laws import DECLARED, UNIVERSAL
from grape_bench.registry import Registry
from grape_bench.store import Store
from grape_bench.verification import Finding, Verification
from grape_bench.verify import configurations, summary, table, verify

MIXED = Path(__file__).parent / "data" / "mixed_rotation.py"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def typed(*words: str) -> tuple[int, str]:
        code = cli.main([*words, "--results", str(tmp_path / "results"), "--reports", str(tmp_path / "reports")])
        return code, capsys.readouterr().out

    return typed


def test_at_least_forty_configurations_are_verified_and_all_are_known() -> None:
    assert len(configurations()) >= 40
    assert {text.split("(")[0].split(" ")[0] for text in configurations()} == set(Registry("encodings"))


@pytest.mark.parametrize(
    ("text", "relative", "homomorphism", "path", "bias"),
    [
        ("rope + alibi", True, True, True, ("LowRank",)),
        ("sinusoidal + rope", False, True, None, ()),
        ("rope + t5 + fourier", True, True, False, ("Toeplitz", "LowRank")),
        ("fox + alibi", True, None, True, ("LowRank", "LowRank")),
        ("alibi + transformer_xl", True, None, False, ("LowRank", "LowRank", "LowRank")),
    ],
)
def test_laws_of_a_sum_follow_from_its_parts(
    environment: Environment,
    text: str,
    relative: bool,
    homomorphism: bool | None,
    path: bool | None,
    bias: tuple[str, ...],
) -> None:
    found = verify(text, environment)
    holds = {one.law: None if one.residual is None else one.residual < 1e-8 for one in found.findings}
    assert (holds["relative"], holds["homomorphism"], holds["path"]) == (relative, homomorphism, path)
    assert (found.disagreements, found.bias) == ((), bias)


def test_ranks_and_lifts_are_those_of_the_algebra(environment: Environment) -> None:
    facts = {text: verify(text, environment) for text in ("alibi", "fox", "t5", "sandwich(width=8)", "cope", "none")}
    assert [facts[text].rank for text in ("alibi", "fox")] == [1, 1]
    assert facts["t5"].rank > 90  # type: ignore[operator]
    assert facts["sandwich(width=8)"].rank <= 8  # type: ignore[operator]
    assert [facts[text].rank for text in ("cope", "none")] == [None, None]
    assert facts["t5"].channels is None
    assert facts["alibi"].channels == 1
    assert verify("alibi + transformer_xl(channels=6)", environment).channels == 1 + 2 + 6


def test_the_printed_rotation_ends_in_1_with_its_residuals(run: Run) -> None:
    code, out = run("verify", "--encoding", f"{MIXED}:MixedRotation")
    assert code == 1
    for law, residual in (("isometric", "0.9989"), ("homomorphism", "1.999"), ("relative", "1.93\n")):
        assert f"MixedRotation: {law} should hold, and its residual is {residual}" in out
    assert "1 verified: 0 as declared, 1 not, 0 skipped" in out


def test_verify_writes_records_and_the_map(run: Run, tmp_path: Path) -> None:
    code, out = run("verify", "rope + clamp", "alibi", "sinusoidal")
    assert code == 0
    assert "3 verified: 3 as declared, 0 not, 0 skipped" in out
    kept = Store(tmp_path / "results").verifications()
    assert [one.encoding for one in kept] == ["rope + clamp", "alibi", "sinusoidal"]
    page = (tmp_path / "reports" / "encodings.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:4] == ["sinusoidal", "alibi", "rope + clamp"], "in the order of the article's table"


def test_the_list_shows_the_map_of_what_was_verified(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("verify", "alibi")
    cli.main(["list", "encodings", "--results", str(tmp_path / "results")])
    assert "LowRank, lifts by 1" in capsys.readouterr().out
    cli.main(["list", "encodings", "--results", str(tmp_path / "none")])
    assert "Nothing was verified yet" in capsys.readouterr().out


def test_a_residual_between_the_thresholds_agrees_with_neither() -> None:
    for must_hold in (True, False):
        assert not Finding(law="path", residual=1e-6, must_hold=must_hold).agrees
        assert Finding(law="path", residual=None, must_hold=must_hold).agrees
    assert [str(Finding(law="path", residual=0.5, must_hold=one)) for one in (True, False)] == ["! 0.5", "✗ 0.5"]


def test_a_small_residual_is_not_told_as_zero(environment: Environment) -> None:
    given = verify("none", environment)
    odd = given.model_copy(update={"findings": (Finding(law="path", residual=2.5e-6, must_hold=True),)})
    assert "none: path should hold, and its residual is 2.5e-06\n" in summary([odd])


def test_the_map_looks_inside_wrappers(environment: Environment) -> None:
    """Direction and sources are also those of what is wrapped."""
    found = {text: verify(text, environment) for text in ("layers(layers(fox))", "layers(rope)")}
    directions = [row[3].text for row in catalogue.map_table(found).rows]
    assert directions == ["causal", "both"]
    page = catalogue.report(found.values())
    table = page.sections[-1].pieces[0]
    assert [row[0].text for row in table.rows] == ["layers", "fox", "rope"]


def test_a_fact_that_a_file_computes_is_unknown_to_the_map(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from grape_bench.encodings import Encoding\n\n\n"
        "class Mine(Encoding):\n    group = 'none'.upper()\n    laws = ('relative', 'reflection')\n\n"
        "    def __init__(self, site):\n        super().__init__()\n"
    )
    code, _ = run("verify", "--encoding", f"{tmp_path / 'mine.py'}:Mine")
    page = (tmp_path / "reports" / "encodings.md").read_text(encoding="utf-8")
    assert code == 0
    assert next(line for line in page.splitlines() if line.startswith("| Mine ")).split("|")[2].strip() == "–"


def test_findings_of_an_older_version_are_not_shown(environment: Environment) -> None:
    old = Verification(encoding="alibi", versions=("alibi@0",), at="2024-01-01T00:00:00Z", environment=environment)
    assert catalogue.latest([old]) == {}
    gone = old.model_copy(update={"encoding": "nothing_of_that_name"})
    assert catalogue.latest([gone]) == {}


def test_what_cannot_live_there_is_skipped_with_its_sentence(environment: Environment) -> None:
    found = verify("t5(buckets=1)", environment)
    assert "buckets" in found.message
    assert "0 as declared, 0 not, 1 skipped" in summary([found])
    assert found.message in table([found])


def test_every_law_has_a_meaning_on_the_page() -> None:
    assert {law.__name__ for law in (*DECLARED, *UNIVERSAL)} == set(catalogue.MEANING)

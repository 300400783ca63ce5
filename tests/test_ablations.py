"""The ablation suites: which claims of the article they hold, and that all of these can be judged."""

from pathlib import Path

import pytest

from grape_bench.cell import AccuracyCell
from grape_bench.ranking import SEEDS
from grape_bench.suite import expand, load

FILES = sorted((Path(__file__).parent.parent / "suites").glob("ablation-*.yaml"))
ARTICLE = {  # the claims that no other suite decides, and where each one is
    "rotation-bias": "C2",
    "scale": "C8",
    "stacking": "C9",
    "window": "C10",
    "lengths": "C11",
    "base": "C12",
    "heads": "C13",
    "norm": "C14",
}


def test_each_claim_of_the_article_has_its_suite() -> None:
    assert {path.stem.removeprefix("ablation-") for path in FILES} == ARTICLE.keys()
    for path in FILES:
        ids = {one.id.partition("-")[0] for one in load(path).claims}
        assert ARTICLE[path.stem.removeprefix("ablation-")] in ids


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_there_are_seeds_enough_for_verdicts_and_few_enough_trainings_for_two_cores(path: Path) -> None:
    suite = load(path)
    assert len(suite.seeds) == SEEDS
    cells = [one for one in expand(suite) if isinstance(one, AccuracyCell)]
    # Some 45 s of a core for 1000 steps of 48 sequences of 64 tokens, as measured on two cores in table C.
    seconds = sum(45 * one.training.steps * one.training.batch * one.train_length / (1000 * 48 * 64) for one in cells)
    assert seconds / 2 < 25 * 60


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_has_a_size_for_a_gpu(path: Path) -> None:
    large = load(path.with_name(f"{path.stem}@gpu.yaml"))
    assert {one.model.width for one in large.accuracy} == {128}
    assert len(large.claims) == len(load(path).claims)

"""The format of a suite: every key of its file with its type, bounds and meaning."""

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from grape_bench.cell import Count, Frozen
from grape_bench.errors import allowed
from grape_bench.resources import Resources
from grape_bench.suite_claim import Claim
from grape_bench.suite_entry import AccuracyGrid, CostGrid
from grape_bench.suite_filter import parsed
from grape_bench.suite_size import Size
from grape_bench.suite_values import Axis, EncodingText, Name, Seed, as_finding, plugins, wrong


class ExpectedSkip(Frozen):
    """Cells that are known to be skipped. A suite that lists such cells fails where another one is skipped."""

    only: Axis[str] = Field(description="filters as those of --only, such as metric=decode_ms; all must hold")
    reason: str = Field(min_length=1, max_length=500, description="why these cells cannot be done")

    @field_validator("only")
    @classmethod
    def _filters_are_known(cls, items: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for index, item in enumerate(items):
            with as_finding(index):
                parsed([item], plugins(info))
        return items


class Thresholds(Frozen):
    """How much worse than before, from commit to commit, is a regression."""

    time: float = Field(0.05, gt=0, le=10, description="share of time: 0.05 is 5 %")
    memory: float = Field(0.01, gt=0, le=10, description="share of peak memory")
    accuracy: float = Field(0.02, gt=0, le=1, description="accuracy lost, of 1")


class SuiteFile(Frozen):
    """A benchmark suite of grape-bench: which position encodings are compared, at what, and how."""

    title: str = Field(min_length=1, max_length=120, description="a short headline")
    about: str = Field("", max_length=10_000, description="one paragraph shown in the report")
    encodings: Axis[EncodingText] = Field(description="expressions such as none, rope(base=1e6) or rope + fourier")
    baseline: EncodingText | None = Field(None, description="the encoding that ratios refer to, one of `encodings`")
    seeds: Axis[Seed] = Field((0,), description="one training for each; equal seeds see equal data")
    effort: Literal["quick", "full"] = Field("quick", description="how many rounds and processes cost is measured in")
    vary: Axis[Literal["encoding", "backend", "heads", "kv_heads", "dtype"]] = Field(
        ("encoding",), description="what differs within a block, whose members are timed in the same rounds"
    )
    processes: Count | None = Field(
        None, description="fresh processes in which each block is timed; as many as the effort says where left out"
    )
    threads: int = Field(
        1, ge=1, le=1024, description="of one cost operation; above 1 it is timed by the wall clock, on a quiet machine"
    )
    learned: float = Field(
        0.75, gt=0, le=1, description="normalised score at the training length from which an encoding has learned"
    )
    block_minutes: float = Field(30, gt=0, le=10_000, description="minutes after which a block is stopped as timed out")
    resources: Resources = Field(Resources(), description="what a training takes of a machine")
    regressions: Thresholds = Field(Thresholds(), description="what `grape-bench history regressions` reports")
    cost: tuple[CostGrid, ...] = Field((), description="grids of cost settings")
    accuracy: tuple[AccuracyGrid, ...] = Field((), description="trainings")
    sizes: dict[Name, Size] = Field({}, description="other sizes of the trainings by name, such as gpu")
    skips: tuple[ExpectedSkip, ...] = Field((), description="skips that are expected; then any other one is a failure")
    claims: tuple[Claim, ...] = Field((), description="sentences that the records are to support or refute")

    @field_validator("baseline")
    @classmethod
    def _baseline_is_listed(cls, baseline: str | None, info: ValidationInfo) -> str | None:
        if baseline is None:
            raise wrong("must be text, not null; the encoding is the word none")
        if baseline not in (encodings := info.data.get("encodings", (baseline,))):
            raise wrong(f"{baseline!r} is not among the suite's encodings.{allowed(baseline, encodings)}")
        return baseline


class Suite(SuiteFile):
    """A checked suite. Its expressions are canonical.

    Args:
        name: the file's stem; records and reports are kept under it.
    """

    name: str


def schema() -> dict[str, Any]:
    """The JSON schema of a suite's file, for editors.

    It names no plug-in, so that a new plug-in leaves it as it is; `grape-bench check` knows them.
    """
    tree = SuiteFile.model_json_schema()
    for part in (tree, *tree["$defs"].values()):
        part["description"] = part["description"].split("\n\n")[0].replace("\n", " ")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **tree}

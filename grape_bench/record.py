"""Reading: raw samples of one metric. Record: a reading with its cell, status and environment; one JSON line."""

import uuid
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer

from grape_bench.cell import Cell, Frozen
from grape_bench.environment import Environment
from grape_bench.gpu_reading import GpuReading
from grape_bench.score import Score

SCHEMA = 1  # history: 1, the first

Status = Literal["ok", "skipped", "failed"]
Fault = Literal["oom", "timeout", "nan", "error", "killed", "throttled", "gate"]
Role = Literal["member", "control"]


def _moment(text: str) -> str:
    datetime.fromisoformat(text)  # a ValueError where there is no such day
    return text


Moment = Annotated[str, Field(pattern=r"^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$"), AfterValidator(_moment)]


class TimeReading(Frozen):
    """Milliseconds of one call, one sample a round.

    Args:
        samples_ms: raw samples by the named clock, in the order of rounds: sample r of one member pairs with
            sample r of every other member of the same `block_run`.
        wall_ms: the same samples by the wall clock.
        warmup_ms: samples that are not used.
        inner: calls in one sample, over which it is averaged.
        clock: `process_time` (CPU time of the process), `perf_counter` (wall) or `cuda_event`.
        sentinel_ms: a fixed multiplication timed in the same rounds; if it moves, the machine did.
        overhead_ms: what the harness adds to one sample: a lap around an operation that does nothing.
        gpu: how it was taken on a GPU; left out of records of a CPU, as are other keys of a GPU.
    """

    kind: Literal["time"] = "time"
    samples_ms: tuple[float, ...]
    wall_ms: tuple[float, ...]
    warmup_ms: tuple[float, ...] = ()
    inner: int = 1
    clock: Literal["process_time", "perf_counter", "cuda_event"]
    threads: int = 1
    sentinel_ms: tuple[float, ...] = ()
    overhead_ms: float | None = None
    gpu: GpuReading | None = None

    @model_serializer(mode="wrap")
    def _where_it_applies(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _less(write(self), "gpu")


class MemoryReading(Frozen):
    """Peak memory of one call over what was allocated before it, in MiB (2^20 bytes).

    Args:
        peak_mib: running peak of the allocator.
        resident_mib: high-water mark of the process over the same call (CPU), as a check; None where unreadable.
        reserved_mib: the caching allocator's footprint (CUDA).
        allocator: which one it is and how it is configured (CUDA).
    """

    kind: Literal["memory"] = "memory"
    peak_mib: float
    resident_mib: float | None = None
    reserved_mib: float | None = None
    allocator: str | None = None

    @model_serializer(mode="wrap")
    def _where_it_applies(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _less(write(self), "allocator")


def _less(written: dict[str, Any], key: str) -> dict[str, Any]:
    """What is written of a reading, without a key that says nothing."""
    return {name: value for name, value in written.items() if name != key or value is not None}


class CurvePoint(Frozen):
    """The training as it went: mean loss since the last point, and the running training accuracy by group."""

    step: int
    loss: float
    accuracy: dict[str, float]


class AccuracyReading(Frozen):
    """One training and its tests.

    Args:
        headline: the group that stands for the task.
        lr: the learning rate that was used.
        data_sha: hash of the training and test data; equal for all encodings of one seed.
        text_sha: hash of the text that the data were cut from; None where they are made up. Figures on two texts are
            never pooled.
        windowed: headline scores beyond the training length where each query saw no key further away than that;
            truncated: where the model saw the last tokens alone, as many as it was trained on. Both are of the same
            questions as `scores`, and empty where the cell asks for no controls.
        train_s: seconds of training by the wall clock; train_cpu_s: the same in CPU time. They were taken beside
            other trainings and are no cost figures.
    """

    kind: Literal["accuracy"] = "accuracy"
    headline: str
    scores: tuple[Score, ...]
    curve: tuple[CurvePoint, ...]
    lr: float
    data_sha: str
    parameters: int
    train_s: float
    train_cpu_s: float
    text_sha: str | None = None
    windowed: tuple[Score, ...] = ()
    truncated: tuple[Score, ...] = ()


Reading = Annotated[TimeReading | MemoryReading | AccuracyReading, Field(discriminator="kind")]


class Record(Frozen):
    """One attempt at one cell.

    Args:
        run: which run of the suite it belongs to; block_run: which measurement of its block.
        at: UTC, ISO 8601.
        fault: the kind of failure; message: the sentence, for a failure or a skip.
        notes: what the backend said of how it computes, such as the choice of `auto`.
        seconds: wall time that the whole block took; estimates of later runs rest on it.
    """

    kind: Literal["record"] = "record"
    schema_: Annotated[int, Field(alias="schema", serialization_alias="schema")] = SCHEMA
    id: str
    suite: str
    run: str
    block_run: str
    at: Moment
    cell: Cell
    role: Role = "member"
    status: Status
    fault: Fault | None = None
    message: str | None = None
    reading: Reading | None = None
    notes: tuple[str, ...] = ()
    seconds: float | None = None
    environment: Environment


class RunStart(Frozen):
    """The first line of a run: what it set out to do.

    Args:
        fresh: measure again what older runs have; only: the filters it was narrowed by.
    """

    kind: Literal["run"] = "run"
    schema_: Annotated[int, Field(alias="schema", serialization_alias="schema")] = SCHEMA
    run: str
    suite: str
    at: Moment
    fresh: bool = False
    only: tuple[str, ...] = ()
    effort: str = "quick"


def run_name(at: str) -> str:
    """A name for a run that began at this moment (ISO 8601), unlike that of any other run."""
    return f"{at[:19].replace(':', '').replace('-', '')}-{uuid.uuid4().hex[:4]}"

"""How a failure is put."""

import pytest
import torch

from grape_bench.attempt import attempt
from grape_bench.cell import CostCell
from grape_bench.errors import Unsupported

CELL = CostCell(metric="forward_ms", encoding="none", length=24)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"), "oom"),
        (RuntimeError("CUDA error: out of memory"), "oom"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "oom"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), "oom"),
        (MemoryError(), "oom"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "error"),
    ],
)
def test_memory_that_ran_out_is_told_from_other_faults(error: Exception, fault: str) -> None:
    def action():
        raise error

    result = attempt(CELL, action)
    assert (result.status, result.fault) == ("failed", fault)
    assert str(error) in result.message
    assert "(action, line" in result.message


def test_what_cannot_be_done_is_a_skip_with_its_reason() -> None:
    def action():
        raise Unsupported("it has no kernel")

    result = attempt(CELL, action)
    assert (result.status, result.fault, result.message) == ("skipped", None, "it has no kernel")

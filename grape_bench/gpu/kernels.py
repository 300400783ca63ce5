"""Which kernels a GPU ran for an operation, and which of them was attention."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from grape_bench.timing import Operation

# A kernel may be the argument of a template: `cutlass::device_kernel<flash::FlashAttnFwdSm90<...>>`.
_FUSED = re.compile(r"\b[\w:]*?(?:flash|fmha|sdpa|attn|attention)\w*(?:::\w+)*|triton_tem\w*", re.IGNORECASE)
_SOFTMAX = re.compile(r"\w*softmax\w*", re.IGNORECASE)
_CALL = "grape_bench call "
_LONGEST = 80  # characters of a name


def ran(operations: Sequence[Operation]) -> list[tuple[str, ...]]:
    """The names of the kernels of one call of each operation, each name once.

    All are called in one session: CUDA's profiling library may crash where it is begun anew beside CUDA graphs.

    Raises:
        RuntimeError: the profiler cannot be used here.
    """
    from torch.profiler import ProfilerActivity, profile, record_function

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for number, operation in enumerate(operations):
            with record_function(f"{_CALL}{number}"):
                held = operation()
                torch.cuda.synchronize()
            del held
    return sorted_out(profiler.events(), len(operations))


def sorted_out(events: Iterable[Any], calls: int) -> list[tuple[str, ...]]:
    """The kernels among a profiler's events by the call that they ran in, which waited for them.

    Raises:
        RuntimeError: a call is not among the events.
    """
    found = list(events)
    spans = {one.name: one.time_range for one in found if one.device_type.name == "CPU"}
    kernels = [one for one in found if one.device_type.name == "CUDA" and not one.name.startswith(_CALL)]
    names = []
    for number in range(calls):
        if (span := spans.get(f"{_CALL}{number}")) is None:
            raise RuntimeError(f"the profiler saw {number} of {calls} calls")
        inside = (one.name for one in kernels if span.start <= one.time_range.start <= span.end)
        names.append(tuple(dict.fromkeys(inside)))
    return names


def attention(names: Iterable[str]) -> tuple[str, ...]:
    """The kernels that attend, without types and arguments; a softmax by itself stands for attention that is not fused.

    `void pytorch_flash::flash_fwd_kernel<Traits<64>, true>(Flash_fwd_params)` is `pytorch_flash::flash_fwd_kernel`.
    """
    known = list(names)
    for pattern in (_FUSED, _SOFTMAX):
        if found := [match.group()[:_LONGEST] for match in map(pattern.search, known) if match]:
            return tuple(dict.fromkeys(found))
    return ()


def said(operations: Sequence[Operation]) -> list[str]:
    """A note for each operation of the kernels that attended in a call of it."""
    try:
        return [_note(attention(names)) for names in ran(operations)]
    except RuntimeError as error:  # what is not known is said, and costs no time that was measured
        return [f"which kernel attended is unknown: {str(error).partition(chr(10))[0]}"] * len(operations)


def _note(kernels: Sequence[str]) -> str:
    return f"attended by {' and '.join(kernels)}" if kernels else "no kernel is known as one of attention"

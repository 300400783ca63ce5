"""Operations of attention, against torch's own count of the fused kernels and against pairs counted one by one."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from grape_bench.cell import CostCell
from grape_bench.flops import PEAK_TFLOPS, attention_flops, peak_share


def cell(metric: str = "forward_ms", **changes: Any) -> CostCell:
    values = {"metric": metric, "encoding": "none", "length": 64, "heads": 4, "head_dim": 16, "batch": 2}
    return CostCell(**(values | {"dtype": "bfloat16"} | changes))


def counted(backward: bool, kv_heads: int = 4) -> int:
    """Torch's count of flash attention at the same shapes, on tensors without numbers."""
    shapes = [(2, heads, 64, 16) for heads in (4, kv_heads, kv_heads)]
    q, k, v = (torch.empty(one, device="meta", dtype=torch.bfloat16, requires_grad=True) for one in shapes)
    with FlopCounterMode(display=False) as counter:
        out = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v)[0]
        if backward:
            out.backward(torch.empty_like(out))
    return counter.get_total_flops()


def test_forward_is_what_torch_counts() -> None:
    assert attention_flops(cell()) == counted(backward=False)


def test_forward_and_backward_are_what_torch_counts() -> None:
    assert attention_flops(cell("forward_backward_ms")) == counted(backward=True)


def test_keys_that_heads_share_save_no_operation() -> None:
    assert attention_flops(cell(kv_heads=2)) == attention_flops(cell())


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_decoder_counts_the_pairs_that_its_mask_leaves(length: int) -> None:
    pairs = int(torch.ones(length, length).tril().sum())
    # Two products, of two operations a channel: 2 sequences, 4 heads of 16 channels.
    assert attention_flops(cell(length=length, causal=True)) == 2 * 2 * 16 * 2 * 4 * pairs


def test_one_query_meets_each_key_once() -> None:
    assert attention_flops(cell("decode_ms", length=100, causal=True)) == 2 * 2 * 16 * 2 * 4 * 100


@pytest.mark.parametrize("changes", [{"metric": "peak_mib"}, {"metric": "train_step_ms", "scope": "model"}])
def test_what_is_no_attention_has_no_count(changes: dict[str, Any]) -> None:
    assert attention_flops(cell(**changes)) == 0


def test_a_share_by_hand() -> None:
    """989e12 operations in a second are all of an H200, and half of them in that time half."""
    one = cell(length=2**15, heads=1, batch=1, head_dim=128)
    seconds = 2 * 2 * 128 * 2**30 / 989e12
    assert peak_share(one, seconds * 1e3, "NVIDIA H200") == pytest.approx(1.0)
    assert peak_share(one, seconds * 2e3, "NVIDIA H200") == pytest.approx(0.5)


def test_no_share_without_a_known_peak() -> None:
    assert peak_share(cell(), 1.0, "cpu") is None
    assert peak_share(cell(dtype="float32"), 1.0, "NVIDIA H200") is None
    assert peak_share(cell("peak_mib"), 1.0, "NVIDIA H200") is None
    assert PEAK_TFLOPS["NVIDIA H200"] == PEAK_TFLOPS["NVIDIA H100 80GB HBM3"], "one processor, two memories"

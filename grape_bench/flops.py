"""Floating point operations of attention, and the most that a GPU can do in a second."""

from grape_bench.cell import CostCell

# Dense bfloat16 by the vendors' data sheets, in 10^12 operations a second, for the names that CUDA gives them.
PEAK_TFLOPS = {
    "NVIDIA H200": 989.0,
    "NVIDIA H100 80GB HBM3": 989.0,
    "NVIDIA A100-SXM4-80GB": 312.0,
    "NVIDIA A100-SXM4-40GB": 312.0,
}
HALF = ("bfloat16", "float16")  # the number formats that this peak is for
# Products of two matrices for each pair of a query and a key: q k and p v; behind them q k once more, since a fused
# kernel keeps no scores, and those of the gradients of p, v, q and k.
_PRODUCTS = {"forward_ms": 2, "forward_backward_ms": 2 + 5, "decode_ms": 2}


def attention_flops(cell: CostCell) -> int:
    """Operations of the products of one call, a multiplication and an addition being two; 0 for any other metric.

        2 D B H pairs for each product,   pairs = T T, or T (T + 1) / 2 in a decoder, or T for one query

    What the encoding adds is left out: a share of the peak says how fast the same attention is with it.
    """
    products = _PRODUCTS.get(cell.metric, 0) if cell.scope == "attention" else 0
    return 2 * products * cell.head_dim * cell.batch * cell.heads * _pairs(cell)


def peak_share(cell: CostCell, milliseconds: float, device: str) -> float | None:
    """Which share of the device's peak a call of that duration makes; None where none is known for it.

    Args:
        device: the name of the GPU.
    """
    operations, peak = attention_flops(cell), PEAK_TFLOPS.get(device)
    if not operations or peak is None or cell.dtype not in HALF or milliseconds <= 0:
        return None
    return operations / (milliseconds / 1e3) / (peak * 1e12)


def _pairs(cell: CostCell) -> int:
    if cell.metric == "decode_ms":
        return cell.length
    return cell.length * (cell.length + 1) // 2 if cell.causal else cell.length**2

"""Names that torch's profiler gives to kernels, as its traces have them."""

from types import SimpleNamespace

import pytest

from grape_bench.gpu.kernels import attention, sorted_out

CAST = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::BFloat16> >(int)"
FLASH = (
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
    "cutlass::bfloat16_t>, false, true>(pytorch_flash::Flash_fwd_params)"
)
CUDNN = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x64x128_4x1x1_kernel0_0"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (FLASH, "pytorch_flash::flash_fwd_kernel"),
        (
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80",
        ),
        (CUDNN, CUDNN[:80]),
        ("triton_tem_fused_0", "triton_tem_fused_0"),
        ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::Mainloop<2> > >(x)", "flash::FlashAttnFwdSm90"),
        ("parallel_forgetting_attn_fwd_kernel", "parallel_forgetting_attn_fwd_kernel"),
    ],
)
def test_fused_kernels_are_known_and_shortened(name: str, short: str) -> None:
    assert attention([CAST, name, "ampere_sgemm_128x64_tn"]) == (short,)


def test_a_softmax_by_itself_is_named_where_nothing_is_fused() -> None:
    softmax = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 6, false, false>(float*)"
    assert attention([CAST, softmax]) == ("softmax_warp_forward",)
    assert attention([softmax, FLASH]) == ("pytorch_flash::flash_fwd_kernel",)


def test_forward_and_backward_are_named_once_each() -> None:
    backward = FLASH.replace("fwd", "bwd")
    assert attention([FLASH, FLASH, backward]) == ("pytorch_flash::flash_fwd_kernel", "pytorch_flash::flash_bwd_kernel")


def test_other_kernels_are_no_attention() -> None:
    assert attention([CAST, "ampere_sgemm_128x64_tn", "Memcpy DtoD (Device -> Device)"]) == ()


def event(name: str, start: float, end: float, device: str = "CUDA") -> SimpleNamespace:
    span = SimpleNamespace(start=start, end=end)
    return SimpleNamespace(name=name, device_type=SimpleNamespace(name=device), time_range=span)


def test_kernels_belong_to_the_call_that_waited_for_them() -> None:
    """Calls are marked on the host, and again on the device from their first kernel to their last."""
    events = [
        event("grape_bench call 0", 0, 50, "CPU"),
        event("grape_bench call 1", 60, 90, "CPU"),
        event("aten::mul", 61, 62, "CPU"),
        event("grape_bench call 1", 65, 88),
        event(FLASH, 20, 30),
        event(CAST, 40, 45),
        event(CUDNN, 65, 70),
        event(CUDNN, 80, 88),
    ]
    assert sorted_out(events, 2) == [(FLASH, CAST), (CUDNN,)]
    with pytest.raises(RuntimeError, match="saw 2 of 3 calls"):
        sorted_out(events, 3)

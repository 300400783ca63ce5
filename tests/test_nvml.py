"""What is asked of NVML, on a library that answers as told."""

import os
from types import SimpleNamespace

import pynvml
import pytest

from grape_bench import nvml


class Library:
    """NVML with one H200 in it; a name in `silent` is not supported by the board."""

    def __init__(self, silent=(), pids=(), bits=0x4 | 0x20, limits=(700_000, 700_000)):
        self.silent, self.pids, self.bits, self.limits = silent, pids, bits, limits
        self.asked = []

    def __getattr__(self, name):
        answers = {
            "nvmlInit": None,
            "nvmlSystemGetDriverVersion": "580.1",
            "nvmlDeviceGetHandleByUUID": "handle",
            "nvmlDeviceGetPowerUsage": 312_400,
            "nvmlDeviceGetTemperature": 45,
            "nvmlDeviceGetCurrentClocksEventReasons": self.bits,
            "nvmlDeviceGetEnforcedPowerLimit": self.limits[0],
            "nvmlDeviceGetPowerManagementDefaultLimit": self.limits[1],
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=one) for one in self.pids],
        }

        def answer(*arguments):
            self.asked.append((name, *arguments))
            if name in self.silent:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            if name == "nvmlDeviceGetClockInfo":
                return {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201}[arguments[1]]
            return answers[name]

        return answer


def test_a_state_has_clocks_power_heat_and_reasons():
    state = nvml.Gpu("uuid", Library()).state()
    assert (state.sm_mhz, state.memory_mhz, state.power_w, state.temperature_c) == (1980, 3201, 312.4, 45)
    assert state.reasons == ("power cap", "software thermal slowdown")


@pytest.mark.parametrize("given", ["1234-5678", "GPU-1234-5678"])
def test_a_gpu_is_asked_for_by_its_uuid(given):
    library = Library()
    nvml.Gpu(given, library)
    assert ("nvmlDeviceGetHandleByUUID", "GPU-1234-5678") in library.asked


def test_a_slice_of_a_gpu_keeps_its_own_name():
    library = Library()
    nvml.Gpu("MIG-1234", library)
    assert ("nvmlDeviceGetHandleByUUID", "MIG-1234") in library.asked


@pytest.mark.parametrize(
    ("pids", "others"),
    [((), 0), ((os.getpid(),), 0), ((os.getpid(), 1, 2), 2), ((999_999_901,), 0), ((999_999_901, 999_999_902), 1)],
)
def test_this_process_is_no_guest_even_where_its_number_is_another_one(pids, others):
    assert nvml.Gpu("uuid", Library(pids=pids)).state().others == others


def test_what_a_board_does_not_know_is_none():
    silent = ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetClockInfo", "nvmlDeviceGetComputeRunningProcesses")
    state = nvml.Gpu("uuid", Library(silent)).state()
    assert (state.power_w, state.sm_mhz, state.memory_mhz, state.others, state.temperature_c) == (None,) * 4 + (45,)


@pytest.mark.parametrize("silent", ["nvmlInit", "nvmlDeviceGetHandleByUUID"])
def test_without_nvml_there_is_a_sentence(silent):
    with pytest.raises(nvml.UnreadableError, match="NVML does not answer: Not Supported"):
        nvml.Gpu("uuid", Library((silent,)))


@pytest.mark.parametrize(("limits", "lowered"), [((700_000, 700_000), None), ((500_000, 700_000), 500.0)])
def test_a_power_limit_is_told_where_it_was_lowered(limits, lowered):
    assert nvml.Gpu("uuid", Library(limits=limits)).lowered_limit_w() == lowered


def test_the_driver_is_named_or_unknown():
    assert nvml.driver(Library()) == "580.1"
    assert nvml.driver(Library(("nvmlInit",))) is None


def test_bits_are_those_of_nvml():
    known = {
        "idle": pynvml.nvmlClocksEventReasonGpuIdle,
        "application clocks": pynvml.nvmlClocksEventReasonApplicationsClocksSetting,
        "power cap": pynvml.nvmlClocksEventReasonSwPowerCap,
        "hardware slowdown": pynvml.nvmlClocksEventReasonHwSlowdown,
        "sync boost": pynvml.nvmlClocksEventReasonSyncBoost,
        "software thermal slowdown": pynvml.nvmlClocksEventReasonSwThermalSlowdown,
        "hardware thermal slowdown": pynvml.nvmlClocksEventReasonHwThermalSlowdown,
        "power brake": pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown,
        "display clocks": pynvml.nvmlClocksEventReasonDisplayClockSetting,
    }
    assert {name: bit for bit, name in nvml.REASONS.items()} == known

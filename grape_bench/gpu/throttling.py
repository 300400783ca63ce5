"""Rounds that a GPU did not hold still for are measured again, a few times."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from grape_bench import timing
from grape_bench.gpu_reading import GpuState
from grape_bench.nvml import HARMFUL, POWER_CAP
from grape_bench.timing import ContendedError, Operation

T = TypeVar("T")

ATTEMPTS = 4  # at one pair of rounds
_CLOCK_RANGE = 0.03  # of the highest clock that was seen
_REST_S = 2.0  # after a disturbance, so that a hot GPU cools and a guest may leave


@dataclass
class Watch:
    """Looks at the GPU before and after each pair of rounds.

    A pair is disturbed where the GPU throttles for heat or for a fault of its power, where somebody else computes on
    it, or where a clock moves by more than 3 %. A power cap is no disturbance: a block may work as hard as the board
    allows, and its members share what they get. Clocks may then move.

    Args:
        look: at the GPU's state.
        load: work that is queued before each look, since an idle GPU lowers its clocks.
        pause: lets seconds go by.
        states: before the first pair that counts, and after each; discarded: why others do not.
    """

    look: Callable[[], GpuState]
    load: Operation = timing.nothing
    pause: Callable[[float], None] = timing.pause
    states: list[GpuState] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    _last: GpuState | None = None

    def __call__(self, rounds: Callable[[], T]) -> T:
        """What an undisturbed pair of rounds gives.

        Raises:
            ContendedError: none of some attempts was undisturbed; it says what disturbed them.
        """
        for _ in range(ATTEMPTS):
            before = self._last or self._look()
            found = rounds()
            self._last = after = self._look()
            why = disturbance(self.states, before, after)
            if not why:
                self.states += [after] if self.states else [before, after]
                return found
            self.discarded.append(why)
            self.pause(_REST_S)
            self._last = None
        raise ContendedError(
            f"the GPU did not hold still: {ATTEMPTS} attempts at one pair of rounds were disturbed, "
            f"the last one since {self.discarded[-1]}"
        )

    def _look(self) -> GpuState:
        self.load()
        return self.look()


def disturbance(earlier: list[GpuState], before: GpuState, after: GpuState) -> str:
    """What disturbed the rounds between two states, in words; empty where nothing did.

    Args:
        earlier: states of rounds of the same block that count.
    """
    both = (before, after)
    if harmful := sorted(HARMFUL & {*before.reasons, *after.reasons}):
        heat = f" at {after.temperature_c} °C" if after.temperature_c is not None else ""
        return f"the GPU throttled by {' and '.join(harmful)}{heat}"
    if others := max(one.others or 0 for one in both):
        return f"{others} other process{'es' * (others > 1)} computed on it"
    if any(POWER_CAP in one.reasons for one in both):
        return ""
    for name, clock in (("SM", _sm), ("memory", _memory)):
        seen = [mhz for one in (*earlier, *both) if (mhz := clock(one)) is not None]
        now = [mhz for one in both if (mhz := clock(one)) is not None]
        if now and min(now) < max(seen) * (1 - _CLOCK_RANGE):
            return f"its {name} clock was {min(now)} MHz after {max(seen)} MHz"
    return ""


def _sm(state: GpuState) -> int | None:
    return state.sm_mhz


def _memory(state: GpuState) -> int | None:
    return state.memory_mhz

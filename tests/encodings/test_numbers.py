"""Fixed numbers: the same on every device and in every dtype, and sent to a GPU once."""

from functools import partial

import pytest
import torch

from grape_bench.encodings._numbers import Numbers
from grape_bench.encodings._slopes import slopes

MADE: list[torch.dtype] = []


def make(values: tuple[float, ...], *, dtype: torch.dtype) -> torch.Tensor:
    MADE.append(dtype)
    return torch.tensor(values, dtype=dtype)


def test_a_device_is_sent_each_dtype_once() -> None:
    MADE.clear()
    numbers, away = Numbers(partial(make, (1.0, 2.0))), torch.device("meta")  # any device but the host
    first = numbers.on(away, torch.float32)
    assert numbers.on(away, torch.float32) is first
    assert first.device == away
    assert numbers.on(away, torch.float64).dtype == torch.float64
    assert len(MADE) == 2, "one copy for each dtype"


def test_the_host_makes_them_anew() -> None:
    numbers = Numbers(partial(make, (1.0, 2.0)))
    one, other = (numbers.on(torch.device("cpu"), torch.float64) for _ in range(2))
    one += 1
    assert other.tolist() == [1.0, 2.0]


def test_a_third_is_rounded_once() -> None:
    numbers = Numbers(partial(torch.tensor, (1 / 3,)))
    assert numbers.on(torch.device("cpu"), torch.float64).item() == 1 / 3
    assert numbers.on(torch.device("cpu"), torch.float32).item() == pytest.approx(1 / 3, rel=1e-7)


def test_slopes_come_in_the_dtype_that_is_asked_for() -> None:
    assert slopes(4, dtype=torch.float32).tolist() == [0.25, 0.0625, 0.015625, 0.00390625]
    assert slopes(4).dtype == torch.float64

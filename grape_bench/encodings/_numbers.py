"""Fixed numbers of an encoding on the device that asks for them."""

from collections.abc import Callable

import torch
from torch import Tensor


class Numbers:
    """Numbers that a formula fixes, such as frequencies: a GPU is sent them once.

    A copy from the host would wait for the GPU in every call, and a CUDA graph cannot hold such a wait. The host makes
    them anew: that is no copy at all.

    Args:
        make: gives them on the host, in the dtype that it is told by keyword.
    """

    def __init__(self, make: Callable[..., Tensor]):
        self._make = make
        self._sent: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def on(self, device: torch.device, dtype: torch.dtype) -> Tensor:
        """The numbers as a constant of that device and dtype."""
        if device.type == "cpu":
            return self._make(dtype=dtype)
        if (device, dtype) not in self._sent:
            self._sent[device, dtype] = self._make(dtype=dtype).to(device)
        return self._sent[device, dtype]

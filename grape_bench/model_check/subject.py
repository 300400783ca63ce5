"""The model under test: ready to be run on tokens that the checks choose."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from grape_bench.errors import UserError
from grape_bench.model_check.adapters import Adapter, Output
from grape_bench.model_check.trace import Edit, Trace, Watch, traced

LENGTH = 19  # no head, channel or batch has this size, so an axis of it is the axis of positions
PADS = 5
OFFSET = 7
EXACT = 1e-6  # of the outputs' scale: what the same sums in the same order may differ by
CLOSE = 1e-4  # the same in float32, where sums are in another order


class NotChecked(Exception):  # noqa: N818 - no error of anyone's
    """A check that cannot be made on this model, with the reason."""


class Subject:
    """A user's model with stirred weights, so that what starts at zero counts.

    Args:
        adapter: how it is called. Its module is changed: weights get noise, and `widen` makes them float32.

    Raises:
        UserError: the model cannot be run on tokens alone.
    """

    def __init__(self, adapter: Adapter):
        self.adapter = adapter
        self.module = adapter.module.eval()
        first = next(self.module.parameters(), None)
        self.device = torch.device("cpu") if first is None else first.device
        self.dtype = torch.float32 if first is None else first.dtype
        self.draw = torch.Generator().manual_seed(0)
        self.batch = next((len(one) for one in getattr(adapter, "extras", {}).values() if isinstance(one, Tensor)), 2)
        self._stir()
        try:
            self.output, self.trace = self.run(self.tokens())
        except NotChecked as error:
            raise UserError(f"the model cannot be checked, since {error}") from None

    def _stir(self) -> None:
        for weight in self.module.parameters():
            if weight.requires_grad and weight.is_floating_point():
                size = weight.shape[-1] ** -0.5 if weight.dim() > 1 else 0.1
                weight.data += size * torch.randn(weight.shape, generator=self.draw).to(weight.data)

    def widen(self) -> None:
        """Go on in float32."""
        self.module.float()
        self.dtype = torch.float32
        self.output, self.trace = self.run(self.tokens())

    def tokens(self) -> Tensor:
        """The same tokens each time, (B, T)."""
        low = self.adapter.vocabulary // 2  # small ones are often padding
        made = torch.Generator().manual_seed(1)
        columns = torch.randint(low, self.adapter.vocabulary, (LENGTH, self.batch), generator=made)
        return columns.T.contiguous().to(self.device)

    def others(self, tokens: Tensor) -> Tensor:
        """Another token everywhere."""
        low = self.adapter.vocabulary // 2
        return low + (tokens - low + 1) % (self.adapter.vocabulary - low)

    def positions(self, start: int, length: int = LENGTH) -> Tensor:
        return torch.arange(start, start + length, device=self.device).expand(self.batch, -1)

    def name(self, module: str) -> str:
        """A module's name for people: the model itself has none."""
        return module or f"{type(self.module).__name__} (the model itself)"

    def run(
        self,
        tokens: Tensor,
        *,
        watch: Watch | None = None,
        before: Mapping[str, Edit] | None = None,
        after: Mapping[str, Edit] | None = None,
        **given: Any,
    ) -> tuple[Output, Trace]:
        """Run the model, watched.

        Args:
            given: see `Adapter.call`.

        Raises:
            NotChecked: the model raises an error.
        """
        try:
            with traced(self.module, watch=watch, before=before, after=after) as trace:
                return self.adapter.call(tokens, **given), trace
        except UserError:
            raise
        except Exception as error:  # a stranger's model may raise anything
            what = " and ".join(("tokens", *given))
            raise NotChecked(f"the model raised on {what}: {type(error).__name__}: {error}".splitlines()[0]) from error

    def needs(self, what: str) -> None:
        """Raise NotChecked where the model does not offer this."""
        if what not in self.adapter.offers:
            raise NotChecked(f"the model takes no {what}.")

    def honours(self, what: str) -> None:
        """Raise NotChecked where the neutral value of this argument changes the outputs: it means something else."""
        self.needs(what)
        all_real = torch.ones_like(self.tokens(), dtype=torch.bool)
        given: dict[str, Any] = {what: self.positions(0) if what == "positions" else all_real}
        moved = difference(self.output.scores, self.run(self.tokens(), **given)[0].scores)
        if not moved < CLOSE:
            meant = "positions 0, 1, .." if what == "positions" else "a mask that is true everywhere"
            raise NotChecked(f"{meant} moved the outputs by {moved:.2g} of their scale, so it means another thing.")


def difference(one: Tensor, other: Tensor) -> float:
    """The largest difference, as a part of the largest finite number; infinite where a number is there in one alone."""
    one, other = (torch.view_as_real(t) if t.is_complex() else t.double() for t in (one, other))
    if one.shape != other.shape or not one.numel():
        return 0.0 if one.shape == other.shape else float("inf")
    apart = torch.where(one == other, 0.0, (one - other).abs())  # a masked place may hold -inf in both
    scale = one.abs().nan_to_num(0.0, 0.0, 0.0).max().clamp_min(1e-30)
    found = (apart.max() / scale).item()
    return found if found == found else float("inf")


def axis(tensor: Tensor, length: int) -> int | None:
    """Which axis of a tensor is that of positions: the second, else the last but one."""
    if tensor.dim() < 2:
        return None
    return next((one for one in (1, tensor.dim() - 2) if tensor.shape[one] == length), None)


def width(trace: Trace) -> int:
    """Channels C of the token vectors: what most modules return as (B, T, C)."""
    widths = Counter(one.shape[2] for visit in trace.visits for one in visit.outputs if _is_rank_3(one))
    return widths.most_common(1)[0][0] if widths else 0


def is_state(tensor: Tensor, channels: int) -> bool:
    """Whether it looks like token vectors (B, T, C)."""
    return _is_rank_3(tensor) and tensor.shape[2] == channels


def _is_rank_3(tensor: Tensor) -> bool:
    square = tensor.dim() == 3 and tensor.shape[1] == tensor.shape[2]  # a bias (H, T, S)
    return tensor.dim() == 3 and tensor.shape[1] == LENGTH and tensor.is_floating_point() and not square


def carriers(trace: Trace) -> dict[str, str]:
    """For each module with a softmax over positions, the nearest module around it that is handed token vectors.

    Returns:
        carriers by the name of the softmax's module, in order; none for a softmax without one.
    """
    channels = width(trace)
    handed = {one.name for one in trace.visits if any(is_state(given, channels) for given in one.inputs)}
    found = {}
    for softmax in trace.softmaxes:
        if softmax.scores.shape[-2:] == (LENGTH, LENGTH):
            parts = softmax.name.split(".")
            around = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
            found[softmax.name] = next((one for one in around if one in handed), "")
    return {name: carrier for name, carrier in found.items() if carrier}

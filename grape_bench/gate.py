"""The gate: a cell is timed only after it agrees with the float64 oracle at a small shape."""

import copy

import torch
from torch import Tensor

from grape_bench.cell import CostCell
from grape_bench.model import named_generator
from grape_bench.operation import AttentionOperation, direction
from grape_bench.registry import Registry

_LENGTH = 37  # odd, and no multiple of any block of a kernel
_BATCH = 2
_SHIFT = 1000  # tokens, for the relative law
TOLERANCE = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 1e-2}
_LAW_TOLERANCE = 1e-7  # float64 at positions near `_SHIFT`
_ZERO = 1e-9  # in float64: softmax sees no constant of a row, and its gradient is rounding
_STEP, _SLOPE_TOLERANCE = 1e-5, 1e-4  # of a difference quotient in float64, whose error is near 1e-10


class GateError(ArithmeticError):
    """A cell does not compute what it declares; it gets no time."""


def check(cell: CostCell, device: str, *, decodes: bool = False, backward: bool = True) -> None:
    """Compare outputs and gradients with the oracle, and the encoding with what it declares.

    Errors are relative to the largest number of the oracle's tensor. Of the laws that are declared, `relative` and
    `isometric` are tried here; `grape-bench verify` measures all.

    Args:
        decodes: the cell decodes, so a token decoded against a cache must equal the last row of all at once.
        backward: the cell takes gradients; otherwise outputs are compared as they come without, since a backend may
            compute them in another way then, or have no gradients.

    Raises:
        GateError: it names what differs, and by how much.
        Unsupported: the cell cannot be done.
    """
    length = min(cell.length, _LENGTH)
    operation = AttentionOperation.of(cell, device, length=length, batch=_BATCH)
    oracle = _oracle(operation)
    leaves, exact_leaves = operation.leaves(), oracle.leaves()
    with torch.set_grad_enabled(backward):
        out = operation.forward()
    exact = oracle.forward()
    _agree("outputs", out, exact, cell)
    if decodes:
        with torch.no_grad():
            _agree("a decoded token's outputs", operation.decoder().step(), exact[:, :, -1:], cell)
    names = ["q", "k", "v", *(name for name, _ in operation.encoding.named_parameters())]
    expected = oracle.gradients(exact, exact_leaves)
    if backward:
        for name, gradient, right in zip(names, operation.gradients(out, leaves), expected, strict=True):
            _agree(f"the gradient of {name}", gradient, right, cell)
    _slopes(oracle, dict(zip(names, zip(exact_leaves, expected, strict=True), strict=True)), cell)
    _laws(oracle, cell)


def _oracle(operation: AttentionOperation) -> AttentionOperation:
    q, k, v = (one.detach().double() for one in operation.qkv)
    encoding = copy.deepcopy(operation.encoding).double()
    backend = Registry("backends")["eager"].load()()
    return AttentionOperation(encoding, backend, (q, k, v), operation.x.double(), operation.causal)


def _agree(what: str, given: Tensor, exact: Tensor, cell: CostCell) -> None:
    allowed = TOLERANCE[cell.dtype]
    error = _error(given, exact)
    if not error <= allowed:  # a nan is no agreement either
        raise GateError(
            f"{what} of {cell.encoding} on {cell.backend} in {cell.dtype} differ from the float64 oracle "
            f"by {error:.2g} of its largest number; at most {allowed:g} is allowed"
        )


@torch.no_grad()
def _slopes(oracle: AttentionOperation, leaves: dict[str, tuple[Tensor, Tensor]], cell: CostCell) -> None:
    """Compare the oracle's gradients with difference quotients, each along one random direction.

    The oracle runs the encoding's own code: a table that was detached has no gradient in either of the two.
    """
    for name, (leaf, gradient) in leaves.items():
        step = _STEP * torch.randn(leaf.shape, generator=named_generator(0, name)).to(leaf)
        ends = []
        for move in (step, -2 * step):
            leaf += move
            out = oracle.forward()
            ends.append((out * direction(out)).sum())
        leaf += step
        norm = gradient.norm().item()
        error = ((ends[0] - ends[1]) / 2 - (gradient * step).sum()).abs() / _STEP / (norm if norm > _ZERO else 1.0)
        if not error <= _SLOPE_TOLERANCE:
            raise GateError(
                f"the gradient of {name} of {cell.encoding} differs from its difference quotient by {error:.2g}"
            )


@torch.no_grad()
def _laws(oracle: AttentionOperation, cell: CostCell) -> None:
    laws, here = oracle.encoding.laws, oracle.at()
    if "relative" in laws:
        error = _error(oracle.forward(oracle.at(start=_SHIFT)), oracle.forward(here))
        if not error <= _LAW_TOLERANCE:
            raise GateError(
                f"{cell.encoding} declares to be relative, and a shift of all positions changes outputs by {error:.2g}"
            )
    if "isometric" in laws:
        q, k, _ = oracle.qkv
        features, _ = oracle.encoding.state(k, here, None)
        for given, turned in zip((q, k), oracle.encoding.rotate(q, k, features, here), strict=True):
            error = _error(turned.norm(dim=-1), given.norm(dim=-1))
            if not error <= _LAW_TOLERANCE:
                raise GateError(f"{cell.encoding} declares to keep norms, and changes them by {error:.2g}")


def _error(given: Tensor, exact: Tensor) -> float:
    """Largest difference over the largest number, or the difference itself where all should be zero."""
    scale = exact.abs().max().item()
    difference = (given.detach().double().cpu() - exact.detach().cpu()).abs().max().item()
    return difference / (scale if scale > _ZERO else 1.0)

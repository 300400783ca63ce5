"""What kernels of other packages have in common: they are on a GPU or nowhere, and they know one bias each."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torch import Tensor

from grape_bench.backends import Mask
from grape_bench.bias import Bias, LowRank
from grape_bench.errors import Unsupported


def module(name: str, package: str, q: Tensor) -> Any:
    """The module `name` of an installed package.

    Raises:
        Unsupported: the queries are on no GPU, or the package is not here.
    """
    if not q.is_cuda:
        raise Unsupported(f"the kernels of {package} are for CUDA alone")
    if find_spec(name.partition(".")[0]) is None:
        raise Unsupported(f"{package} is not installed")
    return import_module(name)


def same_for_all_queries(bias: Bias | None, mask: Mask) -> LowRank:
    """A bias that is one number for each key, up to a constant per row, beside the causal mask alone.

    Looking at the numbers makes the host wait for the device.

    Raises:
        Unsupported: it is another bias, or there is another mask.
    """
    if not mask.causal or mask.keys is not None or mask.documents is not None:
        raise Unsupported("this kernel takes the causal mask and no other")
    if not isinstance(bias, LowRank) or not bool((bias.u == bias.u[:, :, :1]).all()):
        raise Unsupported("this kernel takes no such bias: here it is not the same number of a key for all queries")
    return bias

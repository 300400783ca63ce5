"""One call of a model, watched: each module's inputs and outputs, each attention's scores, each operation."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

Edit = Callable[[Tensor], Tensor]


class Visit(NamedTuple):
    """One call of a module: copies of the tensors that went in and came out."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class Softmax(NamedTuple):
    """Scores (..., T, S) as they went into a softmax, and the weights that came out."""

    name: str
    scores: Tensor
    weights: Tensor


class Operation(NamedTuple):
    """One operation of torch inside the module `name`; its tensors are the model's own and may change later."""

    name: str
    kind: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


Watch = Callable[[Operation], None]


@dataclass
class Trace:
    """What one call showed, in the order in which modules were done.

    Args:
        order: names of modules in the order in which they were entered.
    """

    visits: list[Visit] = field(default_factory=list)
    softmaxes: list[Softmax] = field(default_factory=list)
    order: list[str] = field(default_factory=list)


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors of nested tuples, lists and mappings; other containers, such as caches, are passed over."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from tensors(one)
    elif isinstance(value, Mapping):
        yield from tensors(tuple(value.values()))


def edited(value: Any, edit: Edit) -> Any:
    """The same with each tensor of plain tuples, lists and dicts edited."""
    if isinstance(value, Tensor):
        return edit(value)
    if type(value) in (tuple, list):
        return type(value)(edited(one, edit) for one in value)
    if type(value) is dict:
        return {key: edited(one, edit) for key, one in value.items()}
    return value


class _Hooks:
    """The hooks on every module, and the stack of those that are running."""

    def __init__(self, trace: Trace, before: Mapping[str, Edit], after: Mapping[str, Edit]):
        self.trace, self.before, self.after = trace, before, after
        self.running: list[tuple[str, tuple[Tensor, ...]]] = []
        self.copying = False  # our own copies are no operations of the model

    @property
    def name(self) -> str:
        return self.running[-1][0] if self.running else ""

    @contextmanager
    def on(self, module: nn.Module) -> Iterator[None]:
        with ExitStack() as stack:
            for name, one in module.named_modules():
                enter, leave = self._pair(name)
                stack.callback(one.register_forward_pre_hook(enter, with_kwargs=True).remove)
                stack.callback(one.register_forward_hook(leave).remove)
            yield

    def _pair(self, name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> Any:
            if name in self.before:
                args, kwargs = edited(args, self.before[name]), edited(kwargs, self.before[name])
            self.trace.order.append(name)
            self.running.append((name, self._copies((args, kwargs))))
            return args, kwargs

        def leave(module: nn.Module, args: Any, output: Any) -> Any:
            output = edited(output, self.after[name]) if name in self.after else output
            self.trace.visits.append(Visit(*self.running.pop(), self._copies(output)))
            return output

        return enter, leave

    def _copies(self, value: Any) -> tuple[Tensor, ...]:
        self.copying = True
        found = tuple(one.detach().clone() for one in tensors(value))
        self.copying = False
        return found


class _Operations(TorchDispatchMode):
    """Sees each operation, whatever function or module it came from."""

    supports_higher_order_operators = True

    def __init__(self, hooks: _Hooks, watch: Watch | None):
        super().__init__()  # type: ignore[no-untyped-call]
        self.hooks, self.watch = hooks, watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.hooks.copying:
            return func(*args, **(kwargs or {}))
        kind = func.__name__.partition(".")[0]
        scores = _scores(kind, func, args, kwargs or {})
        output = func(*args, **(kwargs or {}))
        if scores is not None and scores.dim() > 2:
            self.hooks.trace.softmaxes.append(Softmax(self.hooks.name, scores, scores.softmax(-1)))
        if self.watch:
            self.watch(Operation(self.hooks.name, kind, tuple(tensors((args, kwargs))), tuple(tensors(output))))
        return output


def _scores(kind: str, func: Any, args: Any, kwargs: Any) -> Tensor | None:
    """What goes into a softmax; of a fused attention that a model insists on, made anew."""
    if kind in ("_softmax", "_safe_softmax"):
        return cast(Tensor, args[0].clone())
    if not kind.startswith("_scaled_dot_product") or kind.endswith("backward"):
        return None
    given = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | kwargs
    q, k, bias = given["query"], given["key"], given.get("attn_mask", given.get("attn_bias"))
    k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)  # grouped queries
    scores = q @ k.mT * (given.get("scale") or q.shape[-1] ** -0.5)
    if given.get("is_causal"):
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
    return cast(Tensor, scores if bias is None else scores + bias)


@contextmanager
def traced(
    module: nn.Module,
    *,
    watch: Watch | None = None,
    before: Mapping[str, Edit] | None = None,
    after: Mapping[str, Edit] | None = None,
) -> Iterator[Trace]:
    """Watch what a module does inside the `with` block; nothing of it stays on the module.

    Fused attention is replaced by its plain form meanwhile, so that every attention is a softmax over scores.

    Args:
        watch: told of each operation.
        before: an edit of all tensors that go into a module, by its name.
        after: an edit of all tensors that come out of a module, by its name.
    """
    trace = Trace()
    hooks = _Hooks(trace, before or {}, after or {})
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        plain = (torch.no_grad(), sdpa_kernel(SDPBackend.MATH), torch.compiler.set_stance("force_eager"))
        with plain[0], plain[1], plain[2], hooks.on(module), _Operations(hooks, watch):
            yield trace
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)

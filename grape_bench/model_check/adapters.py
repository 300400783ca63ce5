"""How models are called: Hugging Face's and x-transformers' ways, a way by names, and the contract of any other."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from grape_bench.errors import UserError


class Output(NamedTuple):
    """What one call gives: scores or states (B, T, *), and the cache behind the last token, if there is one."""

    scores: Tensor
    past: Any = None


@runtime_checkable
class Adapter(Protocol):
    """How one model is called.

    Args:
        module: the model.
        vocabulary: tokens are integers (B, T) below it.
        offers: which of `positions`, `mask` and `past` the method `call` takes.
        causal: whether outputs may see later tokens; None where the model does not say.
    """

    module: nn.Module
    vocabulary: int
    offers: frozenset[str]
    causal: bool | None

    def call(self, tokens: Tensor, **given: Any) -> Output:
        """Run the model.

        Args:
            tokens: (B, T); behind a cache the new ones alone.
            given: of what is offered, `positions` (B, T) of these tokens, `mask` (B, T), true at real tokens, and
                `past`, what an earlier call returned.
        """


class ByNames:
    """A model whose forward names its arguments as many do.

    Args:
        extras: further arguments of each call, by name.
    """

    names: Mapping[str, tuple[str, ...]] = {
        "positions": ("position_ids", "positions", "pos"),
        "mask": ("attention_mask", "padding_mask", "mask"),
        "past": ("past_key_values", "past", "cache"),
    }

    def __init__(self, module: nn.Module, vocabulary: int, extras: Mapping[str, Any] | None = None):
        self.module, self.vocabulary, self.extras = module, vocabulary, dict(extras or {})
        parameters = inspect.signature(module.forward).parameters
        self.tokens = next(iter(parameters), "")
        self.caches = "use_cache" in parameters
        found = {what: next((one for one in names if one in parameters), "") for what, names in self.names.items()}
        self.words = {what: word for what, word in found.items() if word and word not in self.extras}
        self.offers = frozenset(self.words)
        self.causal: bool | None = None

    def call(self, tokens: Tensor, **given: Any) -> Output:
        words = {self.words[what]: value for what, value in given.items() if value is not None}
        caching = {"use_cache": True} if self.caches else {}
        return _output(self.module(**{self.tokens: tokens}, **self.extras, **caching, **words))


class HuggingFace(ByNames):
    """A model of transformers; of an encoder with a decoder, the decoder is checked, behind a fixed input."""

    def __init__(self, module: Any, extras: Mapping[str, Any] | None = None):
        super().__init__(module, module.config.vocab_size, extras)
        self.causal = True if module.can_generate() or getattr(module.config, "is_decoder", False) else None
        if "decoder_input_ids" in inspect.signature(module.forward).parameters:
            self.tokens = "decoder_input_ids"
            self.words = {"mask": "decoder_attention_mask", "past": self.words["past"]}
            self.offers = frozenset(self.words)
            self.encoded = torch.arange(2, 9) % self.vocabulary

    def call(self, tokens: Tensor, **given: Any) -> Output:
        if "mask" in given:
            given["mask"] = given["mask"].long()  # some of its models subtract the mask from 1
        if self.tokens == "decoder_input_ids":
            self.extras["input_ids"] = self.encoded.to(tokens.device).expand(len(tokens), -1)
        return super().call(tokens, **given)


class XTransformers(ByNames):
    """A TransformerWrapper of x-transformers, whose cached calls take the whole sequence."""

    names: Mapping[str, tuple[str, ...]] = {"positions": ("pos",), "mask": ("mask",), "past": ("cache",)}

    def __init__(self, module: Any, extras: Mapping[str, Any] | None = None):
        super().__init__(module, module.num_tokens, extras)
        self.causal = bool(module.attn_layers.causal)
        self.offers -= set() if self.causal else {"past"}

    def call(self, tokens: Tensor, **given: Any) -> Output:
        earlier, cache = given.pop("past", None) or (tokens[:, :0], None)
        whole = torch.cat((earlier, tokens), dim=1)
        words = {self.words[what]: value for what, value in given.items() if value is not None}
        scores, cache = self.module(whole, cache=cache, return_intermediates=True, **self.extras, **words)
        return Output(scores[:, -tokens.shape[1] :], (whole, cache))


def _output(value: Any) -> Output:
    """A tensor; a pair of it and the cache; or an object as Hugging Face returns it."""
    if isinstance(value, Tensor):
        return Output(value)
    if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
        return Output(value[0], value[1] if len(value) > 1 else None)
    scores = getattr(value, "logits", None)
    scores = getattr(value, "last_hidden_state", None) if scores is None else scores
    if not isinstance(scores, Tensor):
        raise UserError(f"the model returned {type(value).__name__}; write an adapter for it, see docs/check-model.md")
    kept = (getattr(value, name, None) for name in ("past_key_values", "cache"))
    return Output(scores, next((one for one in kept if one is not None), None))


def adapted(value: Any) -> Adapter:
    """The adapter of what a factory returned.

    Args:
        value: an adapter, a module, or a module with example inputs: tokens (B, T), or a dict of arguments whose
            first one is the tokens.

    Raises:
        UserError: it is none of these, or nothing says how many tokens there are.
    """
    if isinstance(value, Adapter):
        return value
    module, example = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    module = getattr(module, "_orig_mod", module)  # what torch.compile wraps
    if not isinstance(module, nn.Module):
        raise UserError(
            f"the factory returned {type(value).__name__}; it must return a torch.nn.Module, a pair of it and example "
            "inputs, or an adapter, see docs/check-model.md"
        )
    extras = dict(list(example.items())[1:]) if isinstance(example, Mapping) else {}
    if hasattr(module, "can_generate") and hasattr(getattr(module, "config", None), "vocab_size"):
        return HuggingFace(module, extras)
    if hasattr(module, "num_tokens") and hasattr(module, "attn_layers"):
        return XTransformers(module, extras)
    return ByNames(module, _vocabulary(module, example), extras)


def _vocabulary(module: nn.Module, example: Any) -> int:
    """What an example shows, or the rows of the smallest embedding: no token below them is out of range."""
    tables = [one.num_embeddings for one in module.modules() if isinstance(one, nn.Embedding)]
    tokens = next(iter(example.values()), None) if isinstance(example, Mapping) else example
    if isinstance(tokens, Tensor) and not tokens.is_floating_point():
        return max(2, int(tokens.max()) + 1)
    if tokens is not None or not tables:
        raise UserError(
            "the model's tokens are not known: return (module, tokens) with integer tokens (B, T), or write an "
            "adapter, see docs/check-model.md"
        )
    return min(tables)

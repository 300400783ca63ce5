"""How a model is called: by the names of its arguments, with examples, or by an adapter."""

import pytest
import torch
from small import VOCABULARY, Alibi, Decoder, Rotary
from torch import nn

from grape_bench.errors import UserError
from grape_bench.model_check.adapters import Output, adapted
from grape_bench.model_check.checkup import checkup


def test_arguments_are_known_by_their_names():
    class Named(nn.Module):
        def forward(self, ids, attention_mask=None, pos=None, cache=None, past=None): ...

    class Bare(nn.Module):
        def forward(self, ids): ...

    tokens = torch.tensor([[3, 41]])
    found = adapted((Named(), tokens))
    assert found.words == {"mask": "attention_mask", "positions": "pos", "past": "past"}
    assert found.vocabulary == 42
    assert adapted((Bare(), tokens)).offers == frozenset()


def test_no_token_is_beyond_the_smallest_embedding():
    model = Decoder(Rotary)
    assert adapted(model).vocabulary == VOCABULARY
    model.types = nn.Embedding(7, 3)
    assert adapted(model).vocabulary == 7


def test_further_example_inputs_are_handed_on_and_set_the_batch():
    seen = []

    class Styled(Decoder):
        def forward(self, tokens, style, positions=None, mask=None, past=None):
            seen.append(tokens.shape[0])
            return super().forward(tokens, positions, mask, past)

    example = {"tokens": torch.tensor([[40], [47], [3]]), "style": torch.zeros(3, 1)}
    assert checkup((Styled(Rotary), example)).findings == ()
    assert set(seen) == {3}


def test_a_compiled_model_is_checked_as_it_was_written():
    assert adapted(torch.compile(Decoder(Rotary), backend="eager")).offers == {"positions", "mask", "past"}


class Turned:
    """A model that wants its tokens as (T, B)."""

    def __init__(self, *attentions, **options):
        class Inside(nn.Module):
            def __init__(self):
                super().__init__()
                self.decoder = Decoder(*attentions, **options)

            def forward(self, turned, kept):
                return self.decoder(turned.T, past=kept)

        self.module, self.vocabulary = Inside(), VOCABULARY
        self.offers, self.causal = frozenset({"past"}), True

    def call(self, tokens, past=None):
        return Output(*self.module(tokens.T, past))


def test_an_adapter_calls_what_we_cannot():
    found = checkup(Turned(Rotary))
    assert found.findings == ()
    assert {one.code for one in found.remarks if one.kind == "not checked"} == {"GB202", "GB204"}
    [finding] = checkup(Turned(Alibi, absolute=True)).findings
    assert (finding.code, str(finding.place)) == ("GB201", "decoder.absolute")


def test_a_causal_model_that_masks_nothing_is_found_where_it_is_declared():
    class Open(Decoder):
        causal = False

    declared = Turned(Rotary)
    declared.module.decoder.__class__ = Open
    [finding] = checkup(declared).findings
    assert (finding.code, str(finding.place)) == ("GB203", "decoder.layers.0.attention")


def test_an_output_without_scores_is_refused():
    class Odd(nn.Module):
        def forward(self, tokens):
            return {"scores": tokens}

    with pytest.raises(UserError, match="the model returned dict; write an adapter"):
        checkup((Odd(), torch.tensor([[3]])))

"""Models without a fault: nothing is found, and what cannot be checked is said."""

import pytest
import torch
from small import VOCABULARY, WIDTH, Alibi, Attention, Decoder, Rotary
from torch import nn

from grape_bench.errors import UserError
from grape_bench.model_check.checkup import checkup


class Encoder(Decoder):
    causal = False


@pytest.mark.parametrize("attention", [Attention, Rotary, Alibi])
def test_a_relative_model_has_no_finding_and_all_is_checked(attention):
    found = checkup(Decoder(attention))
    assert found.findings == ()
    assert [one for one in found.remarks if one.kind == "not checked"] == []


def test_half_precision_weights_are_no_fault_where_angles_are_wide():
    assert checkup(Decoder(Rotary).bfloat16()).findings == ()


def test_an_absolute_model_is_told_to_be_one():
    found = checkup(Decoder(Attention, absolute=True))
    assert found.findings == ()
    told = {(one.code, one.kind) for one in found.remarks}
    assert told == {("GB201", "fact"), ("GB202", "not checked")}
    assert "they enter at absolute" in found.remarks[0].text


def test_rotation_and_bias_together_are_no_doubled_position():
    class Both(Alibi, Rotary):
        pass

    assert checkup(Decoder(Both)).findings == ()


def test_a_model_that_masks_nothing_is_bidirectional_by_design():
    found = checkup(Encoder(Rotary))
    assert "GB203" not in {one.code for one in found.findings}
    assert any(one.code == "GB203" and "bidirectional" in one.text for one in found.remarks)


def test_what_a_model_does_not_offer_is_not_checked():
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.decoder = Decoder(Rotary)

        def forward(self, tokens):
            return self.decoder(tokens)[0]

    found = checkup((Bare(), torch.zeros(2, 5, dtype=torch.long) + VOCABULARY - 1))
    assert found.findings == ()
    unchecked = {one.code: one.text for one in found.remarks if one.kind == "not checked"}
    assert unchecked == {
        "GB202": "the model takes no positions. the model takes no mask.",
        "GB204": "the model takes no mask.",
        "GB206": "the model takes no past.",
    }


def test_a_mask_of_another_meaning_is_not_believed():
    class Inverted(Decoder):
        def forward(self, tokens, positions=None, mask=None, past=None):
            return super().forward(tokens, positions, None if mask is None else ~mask, past)

    found = checkup(Inverted(Rotary))
    assert found.findings == ()
    assert any(one.code == "GB204" and "another" in one.text for one in found.remarks)


def test_weights_that_start_at_zero_hide_nothing():
    """All of attention is multiplied by zero before the weights are stirred."""
    model = Decoder(Rotary, absolute=True)
    for layer in model.layers:
        nn.init.zeros_(layer.attention.out.weight)
        nn.init.zeros_(layer.attention.q.weight)
    assert [one.code for one in checkup(model).findings] == ["GB201"]


def test_nothing_of_the_hooks_stays_on_a_model():
    model = Decoder(Rotary)
    checkup(model)
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "the factory returned int"),
        (nn.Linear(WIDTH, WIDTH), "the model's tokens are not known"),
        ((nn.Linear(WIDTH, WIDTH), {}), "the model's tokens are not known"),
        (
            (nn.Linear(WIDTH, WIDTH), torch.zeros(1, 4, dtype=torch.long)),
            "the model raised on tokens: RuntimeError",
        ),
    ],
)
def test_what_is_no_model_of_tokens_is_refused(value, message):
    with pytest.raises(UserError, match=message):
        checkup(value)

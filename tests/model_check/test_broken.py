"""One fault planted at a time: found once, under its own code, in the module that has it."""

import re

import pytest
import torch
from small import CHANNELS, LONGEST, WIDTH, Alibi, Attention, Decoder, Rotary

from grape_bench.model_check.checkup import checkup


def only(model):
    """The one finding."""
    [finding] = checkup(model).findings
    assert re.search(r"\d", finding.reason), "no number was measured"
    return finding.code, str(finding.place)


@pytest.mark.parametrize("attention", [Rotary, Alibi])
def test_an_absolute_embedding_under_a_relative_signal_is_doubled(attention):
    assert only(Decoder(attention, absolute=True)) == ("GB201", "absolute")


def test_a_parameter_added_by_position_is_found_where_it_is_added():
    class Added(Decoder):
        def __init__(self, *attentions):
            super().__init__(*attentions)
            self.table = torch.nn.Parameter(torch.zeros(LONGEST, WIDTH))

        def embed(self, tokens, positions):
            return super().embed(tokens, positions) + self.table[positions]

    assert only(Added(Alibi)) == ("GB201", "Added (the model itself)")


class ScaledByIndex(Rotary):
    """Sharper for later queries, by their absolute index."""

    def weights(self, scores, sight):
        return super().weights(scores * (sight.q_pos + 1.0)[:, None, :, None].log(), sight)


class CountsPlaces(Alibi):
    """A bias by the place of a key in its tensor."""

    def bias(self, sight):
        return super().bias(sight) + torch.arange(sight.k_pos.shape[1]).float().cos()


def test_an_absolute_index_is_found_by_shifted_positions():
    assert only(Decoder(Rotary, ScaledByIndex)) == ("GB202", "layers.1.attention")


def test_an_absolute_index_that_no_argument_reaches_is_found_by_a_shifted_window():
    assert only(Decoder(CountsPlaces, Alibi)) == ("GB202", "layers.0.attention")


class BiasAfterSoftmax(Alibi):
    def weights(self, scores, sight):
        return scores.masked_fill(~sight.allowed, float("-inf")).softmax(-1) + self.bias(sight)


class MaskBeforeScale(Alibi):
    """A finite mask, small before the scale and not small enough after it."""

    def weights(self, scores, sight):
        masked = (scores * CHANNELS**0.5).masked_fill(~sight.allowed, -30.0)
        return (masked / CHANNELS**0.5 + self.bias(sight)).softmax(-1)


class EmptyRows(Alibi):
    """Padded queries see nothing, not even themselves."""

    def weights(self, scores, sight):
        masked = (scores + self.bias(sight)).masked_fill(~(sight.causal & sight.real), float("-inf"))
        return masked.softmax(-1)


def test_a_bias_after_the_softmax_shows_the_future():
    [finding] = checkup(Decoder(Alibi, BiasAfterSoftmax)).findings
    assert (finding.code, str(finding.place)) == ("GB203", "layers.1.attention")
    assert "no weight: something is added after it" in finding.reason


def test_a_finite_mask_before_the_scale_shows_the_future():
    [finding] = checkup(Decoder(MaskBeforeScale, Alibi)).findings
    assert (finding.code, str(finding.place)) == ("GB203", "layers.0.attention")
    weight = float(re.search(r"a weight of (.+)\.", finding.reason)[1])
    assert 0 < weight < 0.5


def test_a_row_with_every_key_masked_spoils_real_tokens():
    assert only(Decoder(EmptyRows)) == ("GB203", "layers.0.attention")


class SeesPadding(Rotary):
    def weights(self, scores, sight):
        return super().weights(scores, sight._replace(real=torch.ones_like(sight.real)))


def test_an_attention_that_ignores_the_mask_is_named():
    assert only(Decoder(Rotary, SeesPadding)) == ("GB204", "layers.1.attention")


class Repeated(Alibi):
    def bias(self, sight):
        return super().bias(sight).repeat(len(sight.q_pos), 1, 1, 1)


class Viewed(Alibi):
    def bias(self, sight):
        return super().bias(sight).expand(len(sight.q_pos), -1, -1, -1)


def test_a_bias_copied_over_the_batch_is_counted_in_bytes():
    [finding] = checkup(Decoder(Alibi, Repeated)).findings
    assert (finding.code, str(finding.place)) == ("GB205", "layers.1.attention")
    assert f"{3 * 19 * 19 * 4} of {2 * 3 * 19 * 19 * 4} bytes" in finding.reason


def test_a_view_of_a_bias_over_the_batch_takes_no_memory():
    assert checkup(Decoder(Viewed)).findings == ()


class Restarts(Decoder):
    def start(self, past):
        return 0


@pytest.mark.parametrize("model", [lambda: Restarts(Rotary), lambda: Restarts(Attention, absolute=True)])
def test_positions_that_restart_behind_a_cache_are_found_in_who_makes_them(model):
    [finding] = checkup(model()).findings
    assert (finding.code, str(finding.place)) == ("GB206", "Restarts (the model itself)")
    assert "without them they restart" in finding.reason


class TurnsTwice(Rotary):
    """Rotates a cached key again."""

    def forward(self, x, sight, past):
        turned = (self.place(past[0], sight.k_pos[:, :-1]), past[1]) if past else None
        return super().forward(x, sight, turned)


def test_keys_rotated_twice_are_no_missing_offset():
    [finding] = checkup(Decoder(Rotary, TurnsTwice)).findings
    assert (finding.code, str(finding.place)) == ("GB206", "layers.1.attention")
    assert "these are not the cause" in finding.reason


class HalfPositions(Rotary):
    def angles(self, positions):
        return positions[..., None].to(torch.bfloat16).float() * self.frequencies


class HalfAngles(Rotary):
    def angles(self, positions):
        return (positions[..., None].float() * self.frequencies).half()


class HalfFrequencies(Rotary):
    def angles(self, positions):
        return positions[..., None].float() * self.frequencies.bfloat16().float()


class HalfTable(Rotary):
    """A table that was computed in bfloat16, at construction."""

    def __init__(self):
        super().__init__()
        angles = torch.arange(1024).bfloat16()[:, None] * self.frequencies.bfloat16()
        self.register_buffer("table", torch.cat((angles.cos(), angles.sin()), dim=-1).float())

    def place(self, x, positions):
        cos, sin = self.table[positions][:, None].chunk(2, dim=-1)
        one, two = x.chunk(2, dim=-1)
        return torch.cat((one * cos - two * sin, one * sin + two * cos), dim=-1)


class RoundedTable(HalfTable):
    """The same, computed wide and rounded last."""

    def __init__(self):
        super().__init__()
        angles = torch.arange(1024)[:, None] * self.frequencies
        self.table = torch.cat((angles.cos(), angles.sin()), dim=-1).bfloat16().float()


@pytest.mark.parametrize("attention", [HalfPositions, HalfAngles, HalfFrequencies, HalfTable])
def test_half_precision_positions_are_named(attention):
    assert only(Decoder(Rotary, attention)) == ("GB207", "layers.1.attention")


def test_positions_in_bfloat16_are_counted():
    [finding] = checkup(Decoder(HalfPositions)).findings
    assert "4096 positions are 769 different ones" in finding.reason  # bfloat16 has 8 bits of significand
    assert "So in 1 more module" in finding.reason


def test_a_table_that_is_rounded_last_is_right():
    assert "GB207" not in {one.code for one in checkup(Decoder(RoundedTable)).findings}

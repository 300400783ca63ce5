"""`check --model` on models of transformers and x-transformers: nothing in good ones, one fault in each broken one."""

import pytest
import torch
import transformers
from torch import nn
from transformers.models.llama.modeling_llama import LlamaModel
from transformers.models.t5.modeling_t5 import T5Attention
from x_transformers import Decoder, Encoder, TransformerWrapper

from grape_bench.model_check.checkup import checkup

SIZES = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SHORT = {"vocab_size": 64, "n_layer": 2, "n_head": 4}
NO_TOKENS = {"bos_token_id": None, "eos_token_id": None}


def llama(**options):
    sizes = {**SIZES, "intermediate_size": 48, "num_key_value_heads": 2, "max_position_embeddings": 64}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**sizes, **options}))


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**SHORT, **NO_TOKENS, n_embd=32, n_positions=64))


def neox():
    config = transformers.GPTNeoXConfig(**SIZES, intermediate_size=48, max_position_embeddings=64)
    return transformers.GPTNeoXForCausalLM(config)


def bloom():
    return transformers.BloomForCausalLM(transformers.BloomConfig(**SHORT, hidden_size=32))


def mpt():
    return transformers.MptForCausalLM(
        transformers.MptConfig(vocab_size=64, d_model=32, n_layers=2, n_heads=4, max_seq_len=64)
    )


def t5():
    config = transformers.T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    return transformers.T5ForConditionalGeneration(config)


def falcon(**options):
    return transformers.FalconForCausalLM(transformers.FalconConfig(**SIZES, **NO_TOKENS, **options))


def in_bfloat16():
    """Its angles stay in float32."""
    return transformers.AutoModelForCausalLM.from_config(llama().config, dtype=torch.bfloat16)


def wrapped(*, absolute=False, layers=Decoder, **options):
    inside = layers(dim=32, depth=2, heads=4, attn_dim_head=8, **options)
    return TransformerWrapper(num_tokens=64, max_seq_len=64, use_abs_pos_emb=absolute, attn_layers=inside)


GOOD = {
    "llama": llama,
    "llama eager": lambda: llama(attn_implementation="eager"),
    "llama in bfloat16": in_bfloat16,
    "neox": neox,
    "bloom": bloom,
    "mpt": mpt,
    "t5": t5,
    "falcon": falcon,
    "rotary": lambda: wrapped(rotary_pos_emb=True),
    "rotary, fused": lambda: wrapped(rotary_pos_emb=True, attn_flash=True),
    "alibi": lambda: wrapped(alibi_pos_bias=True),
    "t5 bias": lambda: wrapped(rel_pos_bias=True),
    "xpos": lambda: wrapped(rotary_xpos=True),
}


@pytest.mark.parametrize("model", GOOD.values(), ids=GOOD)
def test_nothing_is_found_in_a_good_relative_model_and_all_is_checked(model):
    found = checkup(model())
    assert found.findings == ()
    assert [one for one in found.remarks if one.kind == "not checked"] == []
    assert "inside attention alone, in 2 of 2 attentions" in found.remarks[0].text


@pytest.mark.parametrize(
    ("model", "where"), [(gpt2, "transformer.wpe"), (lambda: wrapped(absolute=True), "pos_emb.emb")]
)
def test_an_absolute_model_is_no_fault_and_is_told(model, where):
    found = checkup(model())
    assert found.findings == ()
    assert {(one.code, one.kind) for one in found.remarks} == {("GB201", "fact"), ("GB202", "not checked")}
    assert f"absolute by design: they enter at {where}" in found.remarks[0].text


@pytest.mark.parametrize(
    "model",
    [
        lambda: transformers.T5EncoderModel(t5().config),
        lambda: transformers.BertModel(transformers.BertConfig(**SIZES, intermediate_size=48)),
        lambda: wrapped(layers=Encoder, rotary_pos_emb=True),
    ],
    ids=["t5", "bert", "x-transformers"],
)
def test_an_encoder_may_see_later_tokens_and_has_no_cache(model):
    found = checkup(model())
    assert found.findings == ()
    unchecked = {one.code for one in found.remarks if one.kind == "not checked"}
    assert unchecked - {"GB202"} == {"GB203", "GB206"}


def doubled():
    """A learned position under a rotation."""
    model = llama()

    class Placed(nn.Module):
        def __init__(self, tokens):
            super().__init__()
            self.tokens, self.positions = tokens, nn.Embedding(64, 32)

        def forward(self, ids):
            return self.tokens(ids) + self.positions(torch.arange(ids.shape[1]) + self.start)

    model.model.embed_tokens = placed = Placed(model.model.embed_tokens)

    def offset(module, args, kwargs):
        kept = kwargs.get("cache")
        placed.start = 0 if kept is None else kept.get_seq_length()

    model.model.register_forward_pre_hook(offset, with_kwargs=True)
    return model


class Around(nn.Module):
    """A faulty call of an attention."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside


def replaced(model, call):
    """The second layer's attention called another way."""

    class Faulty(Around):
        def forward(self, hidden_states, **given):
            return call(self.inside, hidden_states, given)

    layer = model.model.layers[1]
    layer.self_attn = Faulty(layer.self_attn)
    return model


def scaled_by_index():
    def call(inside, states, given):
        output, *rest = inside(states, **given)
        return output * (1 + given["position_ids"][..., None]).log(), *rest

    return replaced(llama(), call)


def sees_the_future():
    """SDPA makes the causal mask where transformers hands none on; this attention is told not to."""
    model = llama()
    model.model.layers[1].self_attn.is_causal = False
    return model


def sees_padding():
    return replaced(llama(), lambda inside, states, given: inside(states, **{**given, "attention_mask": None}))


def copied_bias():
    class Copied(T5Attention):
        def compute_bias(self, *args, **given):
            return super().compute_bias(*args, **given).repeat(2, 1, 1, 1)

    model = t5()
    model.decoder.block[0].layer[0].SelfAttention.__class__ = Copied
    return model


def restarts():
    class Restarts(LlamaModel):
        def forward(self, input_ids=None, position_ids=None, **given):
            if position_ids is None:
                position_ids = torch.arange(input_ids.shape[1])[None]
            return super().forward(input_ids=input_ids, position_ids=position_ids, **given)

    model = llama()
    model.model.__class__ = Restarts
    return model


BROKEN = {
    doubled: ("GB201", "model.embed_tokens.positions"),
    scaled_by_index: ("GB202", "model.layers.1.self_attn"),
    sees_the_future: ("GB203", "model.layers.1.self_attn"),
    sees_padding: ("GB204", "model.layers.1.self_attn.inside"),
    copied_bias: ("GB205", "decoder.block.0.layer.0.SelfAttention"),
    restarts: ("GB206", "model"),
    lambda: llama().bfloat16(): ("GB207", "model.rotary_emb"),
    lambda: falcon(alibi=True): ("GB207", "transformer"),
    lambda: wrapped(absolute=True, alibi_pos_bias=True): ("GB201", "pos_emb.emb"),
    lambda: wrapped(attn_data_dependent_alibi=True): ("GB206", "attn_layers.layers.0.1.attend"),
}


@pytest.mark.parametrize(("model", "expected"), BROKEN.items(), ids=lambda one: getattr(one, "__name__", None))
def test_a_fault_is_found_once_in_its_module(model, expected):
    """The first seven are planted. The others are there: in what casting a model does, in two libraries' own code."""
    [finding] = checkup(model()).findings
    assert (finding.code, str(finding.place)) == expected


def test_a_base_that_follows_the_length_breaks_the_relative_law_and_the_cache():
    """Beyond the length it was made for, dynamic NTK turns new keys by another base than those that are cached."""
    dynamic = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4}
    found = checkup(llama(rope_parameters=dynamic, max_position_embeddings=16)).findings
    assert [(one.code, str(one.place)) for one in found] == [
        ("GB202", "model.layers.0.self_attn"),
        ("GB206", "model.rotary_emb"),
    ]

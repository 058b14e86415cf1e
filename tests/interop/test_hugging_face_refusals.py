"""What there is no counterpart of, and what is damaged, in models of transformers and on the way to them."""

import math

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.checks import small_config, small_gpt_config
from tests.interop.foreign_models import edit
from toolkit.errors import ModelError
from toolkit.interop.hugging_face import read_hugging_face


@pytest.mark.parametrize(("settings", "words"), [
    ({"norm": "rms"}, "does: LlamaForCausalLM has no gelu; Starcoder2ForCausalLM has no RMSNorm$"),
    ({"positions": "learned", "num_key_value_heads": 2}, "GPT2LMHeadModel has no grouped queries; Starc"),
    ({"qk_norm": True, "head_dim": 6}, "does: Starcoder2ForCausalLM has no norms of queries and keys and no heads"),
    ({"rotary_attention_factor": 1.5}, "Starcoder2ForCausalLM has no rotary_attention_factor 1.5"),
    ({"output_bias": True}, "Starcoder2ForCausalLM has no output_bias"),
    ({"activation": "swiglu"}, "LlamaForCausalLM has no LayerNorm; Starcoder2ForCausalLM has no swiglu"),
])  # fmt: skip
def test_a_language_model_that_no_class_computes(write, settings, words):
    with pytest.raises(ModelError, match=words):
        write(small_gpt_config(**settings))


def test_an_encoder_decoder_with_learned_positions(write):
    with pytest.raises(
        ModelError, match=r"does: MarianMTModel has no learned positions; Pegasus\w+ has no post-norm and no"
    ):
        write(small_config(norm_position="post", positions="learned"))


MARIAN, GPT_2 = small_config(norm_position="post"), small_gpt_config(positions="learned")
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
QWEN = small_gpt_config(norm="rms", activation="swiglu", bias=True, bias_in="attention_input")
LLAMA_MODEL, STARCODER = small_gpt_config(norm="rms", activation="swiglu"), small_gpt_config()
REFUSED = [
    (MARIAN, {"architectures": ["BartForConditionalGeneration"]}, "a BartFor.*: this toolkit reads MarianMTModel, Peg"),
    (MARIAN, {"architectures": None, "model_type": "t5"}, "describes a t5: this toolkit reads MarianMTModel"),
    (MARIAN, {"normalize_embedding": True}, "normalize_embedding true, which no .* it must be false"),
    (MARIAN, {"normalize_before": True}, "normalize_before true"),
    (MARIAN, {"static_position_embeddings": False}, "static_position_embeddings false"),
    (MARIAN, {"decoder_ffn_dim": 13}, "decoder_ffn_dim 13, .*it must be 12"),
    (MARIAN, {"decoder_attention_heads": 4}, "decoder_attention_heads 4"),
    (MARIAN, {"decoder_vocab_size": 31}, "decoder_vocab_size 31"),
    (MARIAN, {"activation_function": "quick_gelu"}, "activation_function 'quick_gelu'.*only relu, gelu"),
    (MARIAN, {"quantization_config": {"bits": 4}}, "describes quantised weights"),
    (MARIAN, {"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "cannot be: d_model 8 cannot be divided"),
    (MARIAN, {"toolkit": {"max_length": "long"}}, "'toolkit' has settings of a wrong type"),
    (MARIAN, {"toolkit": {"max_length": 0}}, "max_length is 0"),
    (GPT_2, {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx true"),
    (GPT_2, {"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn true"),
    (GPT_2, {"scale_attn_weights": False}, "scale_attn_weights false"),
    (GPT_2, {"add_cross_attention": True}, "add_cross_attention true"),
    (GPT_2, {"layer_norm_epsilon": 0}, "norm_eps is 0"),
    (
        LLAMA_MODEL,
        {"rope_scaling": {"type": "longrope", "factor": 2}},
        "rope_scaling of type 'longrope': .*llama3, yarn",
    ),
    (LLAMA_MODEL, {"rope_scaling": {"type": ["linear"]}}, r"rope_scaling of type \['linear'\]"),
    (LLAMA_MODEL, {"rope_scaling": {"type": "linear"}}, "damaged: its rope_scaling has no factor"),
    (LLAMA_MODEL, {"rope_scaling": {"type": "linear", "factor": "2"}}, 'rope_scaling.factor is "2", not a number'),
    (LLAMA_MODEL, {"rope_scaling": {"type": "linear", "factor": 0}}, "rotary_factor is 0.0: it must be from 1e-06 to"),
    (
        LLAMA_MODEL,
        {"rope_parameters": {"rope_type": "llama3", "factor": 8.0}},
        "rope_parameters has no low_freq_factor",
    ),
    (
        LLAMA_MODEL,
        {"rope_parameters": LLAMA3 | {"low_freq_factor": 4.0}},
        "rotary_low_freq_factor is 4.0: it must be b",
    ),
    (LLAMA_MODEL, {"rope_parameters": LLAMA3 | {"original_max_position_embeddings": 0}}, "position_embeddings is 0"),
    (LLAMA_MODEL, {"rope_parameters": LLAMA3 | {"original_max_position_embeddings": 1 << 60}}, "at most 1,048,576 tok"),
    (LLAMA_MODEL, {"rope_parameters": {"rope_type": "yarn", "factor": 2, "truncate": False}}, "truncate False"),
    (LLAMA_MODEL, {"rope_parameters": {"rope_type": "yarn", "factor": 2, "rope_theta": 1}}, "yarn needs waves that g"),
    (
        LLAMA_MODEL,
        {"rope_parameters": {"rope_type": "yarn", "factor": math.exp(10), "mscale": 1.0, "mscale_all_dim": -1.0}},
        "rope_parameters has mscale_all_dim -1$",
    ),
    (LLAMA_MODEL, {"head_dim": 3}, "rotary positions need heads of even width: head_dim 3 is odd"),
    (LLAMA_MODEL, {"head_dim": 1 << 40}, "describes a larger model than the weights"),
    (LLAMA_MODEL, {"rope_parameters": {"partial_rotary_factor": 0.5}}, "plain rotary positions only"),
    (STARCODER, {"head_dim": 8}, "head_dim 8, .*it must be null or 4"),
    (LLAMA_MODEL, {"hidden_act": "gelu"}, 'hidden_act "gelu", .*it must be "silu" or "swish"'),
    (STARCODER, {"sliding_window": 0}, "sliding_window is 0, but must be at least 1"),
    (STARCODER, {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types .* must be null or"),
    (QWEN, {"layer_types": ["full_attention", "chunked_attention"]}, "layer_types .* must be null or"),
    (
        QWEN,
        {"use_sliding_window": True, "num_hidden_layers": 10**12, "max_window_layers": -(10**12)},
        "describes a larger model than the weights",
    ),
]


@pytest.mark.parametrize(("config", "values", "words"), REFUSED)
def test_what_has_no_counterpart_is_refused_by_name(write, config, values, words):
    _, directory = write(config)
    edit(directory, **values)
    with pytest.raises(ModelError, match=words):
        read_hugging_face(directory)


DAMAGED = [
    ({"d_model": "8"}, 'd_model is "8", not a whole number'),
    ({"encoder_layers": 0}, "encoder_layers is 0, but must be at least 1"),
    ({"scale_embedding": 1}, "scale_embedding is 1, not true or false"),
    ({"dropout": 10**400}, "it has a number of 401 digits"),
    ({"dropout": float("nan")}, "dropout is NaN, not a number"),
    ({"d_model": 10**9}, "describes a larger model than the weights beside it"),
    ({"decoder_layers": 10**9}, "describes a larger model than the weights beside it"),
    ({"vocab_size": 10**9, "decoder_vocab_size": 10**9}, "describes a larger model than the weights beside it"),
    ({"vocab_size": 31, "decoder_vocab_size": 31}, r"shared.weight has shape \(30, 8\), by config.json it should be"),
    ({"decoder_layers": 3}, "lacks model.decoder.layers.2.self_attn.q_proj.weight"),
    ({"decoder_layers": 1}, "has tensors that a MarianMTModel .* has no place for .*model.decoder.layers.1"),
    ({"toolkit": None, "eos_token_id": 30}, "the id of </s> is 30, but the model has 30 tokens"),
    ({"toolkit": None, "eos_token_id": "end"}, 'eos_token_id is "end", not a whole number'),
]  # fmt: skip


@pytest.mark.parametrize(("values", "words"), DAMAGED)
def test_damaged_settings(write, values, words):
    _, directory = write(MARIAN)
    (directory / "generation_config.json").unlink()
    edit(directory, **values)
    with pytest.raises(ModelError, match=words):
        read_hugging_face(directory)


def test_weights_that_are_not_those_of_the_class(write):
    _, directory = write(MARIAN)
    tensors = load_file(directory / "model.safetensors")
    for values, words in [
        ({"model.encoder.layernorm_embedding.weight": np.ones(8, np.float32)}, "no place for .*layernorm_embedding"),
        ({"model.encoder.layers.0.fc1.bias": np.full(12, np.nan, np.float32)}, "fc1.bias contains values that are not"),
        ({"model.encoder.layers.0.fc1.bias": np.ones(13, np.float32)}, r"fc1.bias has shape \(13,\)"),
        ({"final_logits_bias": np.ones(29, np.float32)}, "final_logits_bias is damaged"),
        ({"final_logits_bias": np.full((1, 30), np.nan, np.float32)}, "final_logits_bias is damaged"),
    ]:
        save_file(tensors | values, directory / "model.safetensors")
        with pytest.raises(ModelError, match=words):
            read_hugging_face(directory)

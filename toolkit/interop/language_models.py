"""The language models of transformers with learned positions, each as a table in the language of `mapping`.

GPT-2 and those that changed little of it. Those with rotary positions are in `rotary_models`.
"""
# ruff: noqa: RUF012  (the classes are tables)

from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.interop.architectures import Architecture, Setting
from toolkit.interop.hugging_face_files import LM_HEAD, ForeignSettings, ForeignWeights, untied_note
from toolkit.interop.mapping import EMBEDDING, OUTPUT, Entry, Table, Tensors
from toolkit.models.gpt import GPTConfig

PLAIN_ACTIVATIONS = {"relu", "gelu", "gelu_tanh", "silu"}
BIASES = {"biases of attention", "biases of feed-forward networks"}
INPUT_BIASES = "biases of queries, keys and values alone"  # the others can be zeros, where a class has them everywhere
GROUPED = {"keys for each head", "grouped queries", "one head of keys"}


class LanguageModel(Architecture):
    """In all classes of language models, the embedding may be the output table too."""

    config_class = GPTConfig
    ties = True  # the embedding is the output table too, where config.json does not say

    def declared_tie(self, settings: ForeignSettings) -> bool:
        return settings.get("tie_word_embeddings", self.ties)

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        """Tie the tables unless a file has two that differ, whatever it says."""
        return {"tie": self.declared_tie(settings) and weights.are_equal(*self.tables[True][0].theirs)}

    def notes(self, settings: ForeignSettings, weights: ForeignWeights, config: GPTConfig) -> list[str]:
        is_other = self.declared_tie(settings) and not config.tie
        return [untied_note(LM_HEAD, "tie_word_embeddings")] if is_other else []


def language_model_tables(embedding: str) -> dict[bool, tuple[Table, ...]]:
    """Give the tables of tokens, by whether they are tied."""
    return {
        True: (Table(EMBEDDING, (embedding, LM_HEAD)),),
        False: (Table(EMBEDDING, (embedding,)), Table(OUTPUT, (LM_HEAD,))),
    }


class GPT2(LanguageModel):
    """Radford et al. 2019.  Its maps are called Conv1D and are (inputs, outputs), as ours."""

    name, model_type, prefix = "GPT2LMHeadModel", "gpt2", "transformer."
    begins_texts = False
    redundant = (".attn.bias", ".attn.masked_bias")  # older files hold the causal mask, and the score of what it hides
    has = {"learned positions", "LayerNorm", "keys for each head", INPUT_BIASES, *BIASES, *PLAIN_ACTIVATIONS}
    fields = {"bias": True, "positions": "learned"}
    settings = (
        Setting("vocab_size", "vocab_size", 50257),
        Setting("n_embd", "d_model", 768),
        Setting("n_layer", "layers", 12),
        Setting("n_head", "num_heads", 12),
        Setting("n_inner", "d_ff", lambda found: 4 * found["d_model"]),
        Setting("activation_function", "activation", "gelu_new"),
        Setting("layer_norm_epsilon", "norm_eps", 1e-5),
        Setting("n_positions", "max_length", 1024),
        Setting("tie_word_embeddings", value=lambda config: config.tie),
        Setting("embd_pdrop", "embedding_dropout", 0.1),
        Setting("attn_pdrop", "attention_dropout", 0.1),
        Setting("resid_pdrop", "residual_dropout", 0.1),
    )
    expected = {
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "reorder_and_upcast_attn": (False,),
        "add_cross_attention": (False,),
    }
    aliases = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    tensors = Tensors(
        layer="transformer.h.{layer}.",
        parts={
            "attention_norm": "ln_1",
            "attention_input": "attn.c_attn",
            "attention_output": "attn.c_proj",
            "feed_forward_norm": "ln_2",
            "up": "mlp.c_fc",
            "down": "mlp.c_proj",
        },
        norm="transformer.ln_f",
        positions="transformer.wpe.weight",
        transposed=False,
    )
    tables = language_model_tables("transformer.wte.weight")


class GPTBigCode(GPT2):
    """Allal et al. 2023: GPT-2 with one head of keys and values for all queries (Shazeer 2019), and ordinary maps."""

    name, model_type = "GPTBigCodeForCausalLM", "gpt_bigcode"
    has = GPT2.has - {"keys for each head"} | {"one head of keys"}
    fields = {**GPT2.fields, "num_key_value_heads": 1}
    settings = (
        *(each for each in GPT2.settings if each.theirs != "activation_function"),
        Setting("activation_function", "activation", "gelu_pytorch_tanh"),
        Setting("multi_query", value=True),
    )
    # With several heads of keys, their maps lie in another order.
    expected = {"multi_query": (True,), "scale_attn_weights": (True,), "add_cross_attention": (False,)}
    tensors = Tensors(
        layer=GPT2.tensors.layer, parts=GPT2.tensors.parts, norm=GPT2.tensors.norm, positions=GPT2.tensors.positions
    )


class OPT(LanguageModel):
    """Zhang et al. 2022: GPT-2's arrangement, with a table of positions that begins two rows late."""

    name, model_type, prefix = "OPTForCausalLM", "opt", "model."
    has = GPT2.has
    needs = {"norm_eps": 1e-5}
    fields = {"positions": "learned"}
    settings = (
        Setting("vocab_size", "vocab_size", 50272),
        Setting("hidden_size", "d_model", 768),
        Setting("num_hidden_layers", "layers", 12),
        Setting("num_attention_heads", "num_heads", 12),
        Setting("ffn_dim", "d_ff", 3072),
        Setting("activation_function", "activation", "relu"),
        Setting("max_position_embeddings", "max_length", 2048),
        Setting("do_layer_norm_before", value=True),
        Setting("word_embed_proj_dim", value=lambda config: config.d_model),
        Setting("enable_bias", value=lambda config: "map" in biased_parts(config)),
        Setting("tie_word_embeddings", value=lambda config: config.tie),
        Setting("attention_dropout", "attention_dropout", 0.0),
        Setting("dropout", "residual_dropout", 0.1),
    )
    expected = {
        "do_layer_norm_before": (True,),
        "_remove_final_layer_norm": (False,),
        "layer_norm_elementwise_affine": (True,),
        "layerdrop": (0.0, 0),
    }
    tensors = Tensors(
        layer="model.decoder.layers.{layer}.",
        parts={
            "attention_norm": "self_attn_layer_norm",
            "attention_input": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
            "attention_output": "self_attn.out_proj",
            "feed_forward_norm": "final_layer_norm",
            "up": "fc1",
            "down": "fc2",
        },
        norm="model.decoder.final_layer_norm",
        positions="model.decoder.embed_positions.weight",
        unused_positions=2,
    )
    tables = language_model_tables("model.decoder.embed_tokens.weight")

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        settings.expect("word_embed_proj_dim", None, found["d_model"])
        bias_in = "all" if settings.get("enable_bias", True) else "norms"
        return {**super().derived(settings, weights, found), "bias": True, "bias_in": bias_in}

    def entries(self, config: GPTConfig, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Entry]:
        """Yield biases of norms even where nothing else has any, and those of maps everywhere or nowhere."""
        return self.tensors.entries(config, shapes, biased=biased_parts(config))


def biased_parts(config: GPTConfig) -> tuple[str, ...]:
    """Say what has biases in a class where norms always have, and maps everywhere or nowhere."""
    maps_have = config.has_bias("attention_input") or config.has_bias("feed_forward")
    return ("norm", "map") if maps_have else ("norm",)

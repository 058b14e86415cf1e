"""The language models of transformers, GPT-2, Llama and Starcoder2, each as a table in the language of `mapping`."""
# ruff: noqa: RUF012  (the classes are tables)

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolkit.errors import ModelError
from toolkit.interop.hugging_face_files import LM_HEAD, ForeignSettings, ForeignWeights, untied_note
from toolkit.interop.mapping import EMBEDDING, OUTPUT, Architecture, Entry, Setting, Table, Tensors
from toolkit.models.gpt import GPTConfig

_PLAIN_ACTIVATIONS = {"relu", "gelu", "gelu_tanh", "silu"}


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


def _language_model_tables(embedding: str) -> dict[bool, tuple[Table, ...]]:
    return {
        True: (Table(EMBEDDING, (embedding, LM_HEAD)),),
        False: (Table(EMBEDDING, (embedding,)), Table(OUTPUT, (LM_HEAD,))),
    }


class GPT2(LanguageModel):
    """Radford et al. 2019.  Its maps are called Conv1D and are (inputs, outputs), as ours."""

    name, model_type, prefix = "GPT2LMHeadModel", "gpt2", "transformer."
    begins_texts = False
    redundant = (".attn.bias", ".attn.masked_bias")  # older files hold the causal mask, and the score of what it hides
    has = {"learned positions", "LayerNorm", *_PLAIN_ACTIVATIONS}
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
    tables = _language_model_tables("transformer.wte.weight")


_ROTARY_PARTS = {
    "attention_norm": "input_layernorm",
    "attention_input": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention_output": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
}


def _rotary_settings(
    vocab_size: int,
    d_model: int,
    layers: int,
    num_heads: int,
    num_key_value_heads: int | Callable[[Mapping[str, Any]], int],
    d_ff: int,
    max_length: int,
) -> tuple[Setting, ...]:
    """Give the settings that Llama and Starcoder2 share, from what stands for those that config.json leaves out."""
    groups = "num_key_value_heads"
    return (
        Setting("vocab_size", "vocab_size", vocab_size),
        Setting("hidden_size", "d_model", d_model),
        Setting("num_hidden_layers", "layers", layers),
        Setting("num_attention_heads", "num_heads", num_heads),
        Setting(groups, groups, num_key_value_heads, value=lambda c: c.num_key_value_heads or c.num_heads),
        Setting("intermediate_size", "d_ff", d_ff),
        Setting("max_position_embeddings", "max_length", max_length),
        Setting("rope_theta", value=lambda config: config.rotary_base),
        Setting("rope_parameters", value=lambda config: {"rope_type": "default", "rope_theta": config.rotary_base}),
        Setting("tie_word_embeddings", value=lambda config: config.tie),
        Setting("attention_dropout", "attention_dropout", 0.0),
    )


class _Rotary(LanguageModel):
    """Llama and Starcoder2 share rotary positions, grouped queries, and most names."""

    redundant = (".rotary_emb.inv_freq",)  # files of the first years hold how fast the rotary positions turn
    tables = _language_model_tables("model.embed_tokens.weight")

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        settings.expect("head_dim", None, found["d_model"] // found["num_heads"])
        kinds = settings.values.get("layer_types")
        settings.expect("layer_types", None, ["full_attention"] * (len(kinds) if isinstance(kinds, list) else 0))
        settings.expect("per_layer_config", None)
        context, grouped = found["max_length"], found["num_key_value_heads"] != found["num_heads"]
        return {
            **super().derived(settings, weights, found),
            "num_key_value_heads": found["num_key_value_heads"] if grouped else 0,
            "rotary_base": _rotary_base(settings),
            "max_length": min([context, *_shorter_contexts(settings, context).values()]),
        }

    def notes(self, settings: ForeignSettings, weights: ForeignWeights, config: GPTConfig) -> list[str]:
        (context,) = (each.read(settings, {}) for each in self.settings if each.theirs == "max_position_embeddings")
        shorter = _shorter_contexts(settings, context["max_length"]).items()
        return [
            *super().notes(settings, weights, config),
            *(f"{why}: it reads at most {most:,} tokens here" for why, most in shorter),
        ]


class Llama(_Rotary):
    """Touvron et al. 2023."""

    name, model_type = "LlamaForCausalLM", "llama"
    ties = False
    has = {"rotary positions", "RMSNorm", "swiglu", "grouped queries"}
    fields = {"positions": "rotary", "norm": "rms", "activation": "swiglu"}
    settings = (
        *_rotary_settings(32000, 4096, 32, 32, lambda found: found["num_heads"], 11008, 2048),
        Setting("hidden_act", value="silu"),
        Setting("rms_norm_eps", "norm_eps", 1e-6),
        Setting("attention_bias", value=lambda config: config.has_bias("attention")),
        Setting("mlp_bias", value=lambda config: config.has_bias("feed_forward")),
        Setting("head_dim", value=lambda config: config.d_model // config.num_heads),
    )
    expected = {"hidden_act": ("silu", "swish"), "pretraining_tp": (1,)}
    tensors = Tensors(
        layer="model.layers.{layer}.",
        parts={**_ROTARY_PARTS, "up": ("mlp.gate_proj", "mlp.up_proj"), "down": "mlp.down_proj"},
        norm="model.norm",
    )

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        names = {"attention": "attention_bias", "feed_forward": "mlp_bias"}
        biases = [part for part, name in names.items() if settings.get(name, False)]
        where = {"bias": bool(biases), "bias_in": "all" if len(biases) != 1 else biases[0]}
        return super().derived(settings, weights, found) | where

    def entries(self, config: GPTConfig, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Entry]:
        return self.tensors.entries(config, shapes, biased=())


class Starcoder2(_Rotary):
    """Lozhkov et al. 2024: Llama's positions and grouped queries, with GPT-2's norms and feed-forward networks."""

    name, model_type = "Starcoder2ForCausalLM", "starcoder2"
    begins_texts = False
    has = {"rotary positions", "LayerNorm", "grouped queries", *_PLAIN_ACTIVATIONS}
    fields = {"positions": "rotary"}
    settings = (
        *_rotary_settings(49152, 3072, 30, 24, 2, 12288, 4096),
        Setting("hidden_act", "activation", "gelu_pytorch_tanh"),
        Setting("norm_epsilon", "norm_eps", 1e-5),
        Setting("use_bias", value=lambda config: config.has_bias("attention") or config.has_bias("feed_forward")),
        Setting("sliding_window", value=None),
        Setting("embedding_dropout", "embedding_dropout", 0.0),
        Setting("residual_dropout", "residual_dropout", 0.0),
    )
    tensors = Tensors(
        layer="model.layers.{layer}.",
        parts={**_ROTARY_PARTS, "up": "mlp.c_fc", "down": "mlp.c_proj"},
        norm="model.norm",
    )

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        bias, norm_biases = settings.get("use_bias", True), (name for name in weights if name.endswith("norm.bias"))
        has_any = bias or not settings.is_own or any(weights[name].any() for name in norm_biases)
        return super().derived(settings, weights, found) | {"bias": has_any, "bias_in": "all" if bias else "norms"}

    def entries(self, config: GPTConfig, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Entry]:
        """Yield biases of norms even where nothing else has any, and those of maps everywhere or nowhere."""
        maps_have = config.has_bias("attention") or config.has_bias("feed_forward")
        return self.tensors.entries(config, shapes, biased=("norm", "map") if maps_have else ("norm",))


def _rotary(settings: ForeignSettings) -> tuple[str, dict[str, Any], Any]:
    """Read the section on rotary positions, under the one of two names that counts -> that name, it, and their kind."""
    scaling = settings.section("rope_scaling")
    name, section = "rope_scaling" if scaling else "rope_parameters", scaling or settings.section("rope_parameters")
    return name, section, section.get("rope_type", section.get("type", "default"))


def _rotary_base(settings: ForeignSettings) -> float:
    """Read the base of the wave lengths.

    Raises ModelError for positions that are scaled within the context or turn only a part of each head.
    """
    name, section, kind = _rotary(settings)
    if kind not in ("default", "dynamic"):
        raise ModelError(f"{settings.path} has {name} of type {kind!r}: this toolkit has plain rotary positions only")
    part = section.get("partial_rotary_factor", settings.values.get("partial_rotary_factor"))
    if part not in (None, 1):
        raise ModelError(
            f"{settings.path} has partial_rotary_factor {part!r:.20}: this toolkit has plain rotary positions only, "
            "which turn whole heads"
        )
    base = section.get("rope_theta")
    return settings.get("rope_theta", 10000.0) if base is None else settings.typed("rope_theta", base, 10000.0)


def _shorter_contexts(settings: ForeignSettings, context: int) -> dict[str, int]:
    """Say why a model reads fewer tokens here than elsewhere, and how many: so far both compute the same."""
    found = {}
    window = settings.count("sliding_window", context)
    if window < context:
        found[f"it attends to no more than {window:,} tokens (sliding_window)"] = window
    _, section, kind = _rotary(settings)
    if kind == "dynamic":
        original = section.get("original_max_position_embeddings")
        most = context if original is None else settings.typed("original_max_position_embeddings", original, 0)
        found["its rotary positions are stretched in longer texts (dynamic)"] = min(most, context)
    return found

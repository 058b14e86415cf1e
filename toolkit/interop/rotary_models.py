"""The language models of transformers with rotary positions, each as a table in the language of `mapping`.

Llama and what is made like it, and Starcoder2.
"""
# ruff: noqa: RUF012  (the classes are tables)

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from toolkit.errors import ModelError
from toolkit.interop.architectures import Setting
from toolkit.interop.hugging_face_files import ForeignSettings, ForeignWeights
from toolkit.interop.language_models import (
    BIASES,
    GROUPED,
    INPUT_BIASES,
    PLAIN_ACTIVATIONS,
    LanguageModel,
    biased_parts,
    language_model_tables,
)
from toolkit.interop.mapping import Entry, Tensors
from toolkit.models.gpt import GPTConfig

_PARTS = {
    "attention_norm": "input_layernorm",
    "attention_input": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention_output": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
}

_SLIDING = "sliding_attention"  # the kind of a layer whose attention has a window
_LAYER_TYPES = ("full_attention", _SLIDING)
_FREQUENCIES = {"linear frequencies", "llama3 frequencies", "yarn frequencies"}

Groups = int | Callable[[Mapping[str, Any]], int]


def _as_many(found: Mapping[str, Any]) -> int:
    return found["num_heads"]


def _section(settings: ForeignSettings) -> tuple[str, dict[str, Any], Any]:
    """Read the section on rotary positions, under the one of two names that counts -> that name, it, and their kind."""
    scaling = settings.section("rope_scaling")
    name, section = "rope_scaling" if scaling else "rope_parameters", scaling or settings.section("rope_parameters")
    return name, section, section.get("rope_type", section.get("type", "default"))


def _rotary(settings: ForeignSettings, context: int, kinds: Collection[str]) -> dict[str, Any]:
    """Read the fields of our config on rotary positions.  kinds: of frequencies, that the class may have.

    Raises ModelError for others, and for positions that turn only a part of each head.
    """
    name, section, kind = _section(settings)
    if kind not in ("default", "dynamic", *kinds):
        known = ", ".join(("default", "dynamic", *kinds))
        raise ModelError(f"{settings.path} has {name} of type {kind!r:.40}: of this class, types {known} are read here")
    part = section.get("partial_rotary_factor", settings.values.get("partial_rotary_factor"))
    if part not in (None, 1):
        raise ModelError(
            f"{settings.path} has partial_rotary_factor {part!r:.20}: this toolkit has plain rotary positions only, "
            "which turn whole heads"
        )
    numbers = _Numbers(settings, name, section)
    base = section.get("rope_theta")
    found = {"rotary_base": settings.get("rope_theta", 10000.0) if base is None else numbers.get("rope_theta", 10000.0)}
    if kind not in kinds:
        return found
    own_length = settings.values.get("original_max_position_embeddings")  # counts before the section's
    length = numbers.get("original_max_position_embeddings", context) if own_length is None else own_length
    if (length := settings.typed("original_max_position_embeddings", length, 0)) < 1:
        raise ModelError(f"{settings.path} is damaged: original_max_position_embeddings is {length}")
    found |= {"rotary_scaling": kind, "rotary_original_length": length}
    if kind == "yarn":
        return found | _yarn(numbers, context / max(length, 1))
    if kind == "llama3":
        found |= {f"rotary_{each}": numbers.get(each) for each in ("low_freq_factor", "high_freq_factor")}
    return found | {"rotary_factor": numbers.get("factor")}


class _Numbers(NamedTuple):
    """The numbers of a section of config.json."""

    settings: ForeignSettings
    name: str
    section: Mapping[str, Any]

    def get(self, name: str, default: float | None = None) -> Any:
        """Give a number, of the type of its default.  Raises ModelError for one without, if it is missing."""
        value = self.section.get(name)
        if value is None and default is None:
            raise ModelError(f"{self.settings.path} is damaged: its {self.name} has no {name}")
        return default if value is None else self.settings.typed(f"{self.name}.{name}", value, default or 0.0)


def _yarn(numbers: _Numbers, usual_factor: float) -> dict[str, Any]:
    """Read the fields of yarn.  Raises ModelError for numbers that are not its own.

    What attention is sharpened by is 0.1 ln factor + 1 (Peng et al. 2023, eq. 22) where nothing says it, and where
    mscale and mscale_all_dim are given, the ratio of two such numbers.
    """
    path, section = numbers.settings.path, numbers.section
    if section.get("truncate") not in (None, True):
        what = f"truncate {section['truncate']!r:.20} in its {numbers.name}"
        raise ModelError(f"{path} has {what}: this toolkit has yarn with true only")
    factor = numbers.get("factor", usual_factor)
    mscale, all_dim = (numbers.get(name, 0.0) for name in ("mscale", "mscale_all_dim"))
    if not (mscale and all_dim):
        mscale, all_dim = 1.0, 0.0
    logarithm = 0.1 * math.log(factor) if factor > 1 else 0.0
    divisor = all_dim * logarithm + 1
    if divisor <= 0:
        raise ModelError(f"{path} is damaged: its {numbers.name} has mscale_all_dim {all_dim:g}")
    return {
        "rotary_factor": factor,
        "rotary_low_freq_factor": numbers.get("beta_slow", 0.0) or 1.0,
        "rotary_high_freq_factor": numbers.get("beta_fast", 0.0) or 32.0,
        "rotary_attention_factor": numbers.get("attention_factor", (mscale * logarithm + 1) / divisor),
    }


def _written_rotary(config: GPTConfig) -> dict[str, Any]:
    """Give the section that `_rotary` reads."""
    kind = "default" if config.rotary_scaling == "none" else config.rotary_scaling
    found = {"rope_type": kind, "rope_theta": config.rotary_base}
    found |= {"factor": config.rotary_factor} if kind != "default" else {}
    if kind in ("llama3", "yarn"):
        found["original_max_position_embeddings"] = config.rotary_original_length or config.max_length
        low, high = ("low_freq_factor", "high_freq_factor") if kind == "llama3" else ("beta_slow", "beta_fast")
        found |= {low: config.rotary_low_freq_factor, high: config.rotary_high_freq_factor}
    return found | ({"attention_factor": config.rotary_attention_factor} if kind == "yarn" else {})


def _settings(
    vocab_size: int, d_model: int, layers: int, num_heads: int, groups: Groups, d_ff: int, max_length: int
) -> tuple[Setting, ...]:
    """Give the settings that all classes share, from what stands for those that config.json leaves out.

    groups: heads of keys and values.
    """
    shared = "num_key_value_heads"
    return (
        Setting("vocab_size", "vocab_size", vocab_size),
        Setting("hidden_size", "d_model", d_model),
        Setting("num_hidden_layers", "layers", layers),
        Setting("num_attention_heads", "num_heads", num_heads),
        Setting(shared, shared, groups, value=lambda c: c.num_key_value_heads or c.num_heads),
        Setting("intermediate_size", "d_ff", d_ff),
        Setting("max_position_embeddings", "max_length", max_length),
        Setting("rope_theta", value=lambda config: config.rotary_base),
        Setting("rope_parameters", value=_written_rotary),
        Setting("rope_scaling", value=lambda c: None if c.rotary_scaling == "none" else _written_rotary(c)),  # before 5
        Setting("tie_word_embeddings", value=lambda config: config.tie),
        Setting("attention_dropout", "attention_dropout", 0.0),
    )


_GATED_AND_RMS = (Setting("hidden_act", value="silu"), Setting("rms_norm_eps", "norm_eps", 1e-6))
_HEAD_DIM = Setting("head_dim", value=lambda config: config.head_width)


class _Rotary(LanguageModel):
    """All share rotary positions, grouped queries, and most names."""

    redundant = (".rotary_emb.inv_freq",)  # files of the first years hold how fast the rotary positions turn
    usual_window: int | None = None  # of attention, where config.json does not say
    usual_head_dim: int | None = None  # the same
    frequencies = ("linear", "llama3", "yarn")  # that it may have beside the usual ones
    tables = language_model_tables("model.embed_tokens.weight")

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        settings.expect("per_layer_config", None)
        context, grouped = found["max_length"], found["num_key_value_heads"] != found["num_heads"]
        return {
            **super().derived(settings, weights, found),
            "num_key_value_heads": found["num_key_value_heads"] if grouped else 0,
            **_rotary(settings, context, self.frequencies),
            "head_dim": self._head_dim(settings, found["d_model"], found["num_heads"]),
            "max_length": min([context, *self._shorter_contexts(settings, context).values()]),
        }

    def _head_dim(self, settings: ForeignSettings, d_model: int, heads: int) -> int:
        """Give the width of a head, 0 for the usual one, the only one that some classes have."""
        usual = d_model // heads
        if "heads of another width" not in self.has:
            settings.expect("head_dim", None, usual)
            return 0
        found = settings.count("head_dim", max(1, self.usual_head_dim or usual))
        return 0 if found * heads == d_model else found

    def notes(self, settings: ForeignSettings, weights: ForeignWeights, config: GPTConfig) -> list[str]:
        (context,) = (each.read(settings, {}) for each in self.settings if each.theirs == "max_position_embeddings")
        shorter = self._shorter_contexts(settings, context["max_length"]).items()
        return [
            *super().notes(settings, weights, config),
            *(f"{why}: it reads at most {most:,} tokens here" for why, most in shorter),
        ]

    def window(self, settings: ForeignSettings, context: int) -> int:
        """Give how many tokens attention looks back at, `context` where it has no window.

        Raises ModelError where its layers differ.
        """
        kinds = settings.values.get("layer_types")
        settings.expect("layer_types", None, ["full_attention"] * (len(kinds) if isinstance(kinds, list) else 0))
        usual = context if "sliding_window" in settings.values else self.usual_window or context
        return settings.count("sliding_window", usual)

    def _shorter_contexts(self, settings: ForeignSettings, context: int) -> dict[str, int]:
        """Say why a model reads fewer tokens here than elsewhere, and how many: so far both compute the same."""
        found = {}
        window = self.window(settings, context)
        if window < context:
            found[f"it attends to no more than {window:,} tokens (sliding_window)"] = window
        _, section, kind = _section(settings)
        if kind == "dynamic":
            original = section.get("original_max_position_embeddings")
            most = context if original is None else settings.typed("original_max_position_embeddings", original, 0)
            found["its rotary positions are stretched in longer texts (dynamic)"] = min(most, context)
        return found


class Llama(_Rotary):
    """Touvron et al. 2023.  All that is made like it has its RMS norms and gated networks."""

    name, model_type = "LlamaForCausalLM", "llama"
    ties = False
    has = {"rotary positions", "RMSNorm", "swiglu", "heads of another width", *_FREQUENCIES, *GROUPED, *BIASES}
    fields = {"positions": "rotary", "norm": "rms", "activation": "swiglu"}
    settings = (
        *_settings(32000, 4096, 32, 32, _as_many, 11008, 2048),
        *_GATED_AND_RMS,
        Setting("attention_bias", value=lambda config: config.has_bias("attention")),
        Setting("mlp_bias", value=lambda config: config.has_bias("feed_forward")),
        _HEAD_DIM,
    )
    expected = {"hidden_act": ("silu", "swish"), "pretraining_tp": (1,)}
    tensors = Tensors(
        layer="model.layers.{layer}.",
        parts={**_PARTS, "up": ("mlp.gate_proj", "mlp.up_proj"), "down": "mlp.down_proj"},
        norm="model.norm",
    )
    biases: Mapping[str, str] = {"attention": "attention_bias", "feed_forward": "mlp_bias"}  # settings, by part

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        biases = [part for part, name in self.biases.items() if settings.get(name, False)]
        where = {"bias": bool(biases), "bias_in": "all" if len(biases) != 1 else biases[0]}
        return super().derived(settings, weights, found) | where

    def entries(self, config: GPTConfig, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Entry]:
        return self.tensors.entries(config, shapes, biased=())


class Mistral(Llama):
    """Jiang et al. 2023: Llama, with a window of attention, which its later releases do not have."""

    name, model_type = "MistralForCausalLM", "mistral"
    usual_window = 4096
    has = Llama.has - BIASES
    biases = {}
    settings = (
        *_settings(32000, 4096, 32, 32, 8, 14336, 131072),
        *_GATED_AND_RMS,
        _HEAD_DIM,
        Setting("sliding_window", value=None),
    )


class _Qwen(Llama):
    """All have a window in some layers only, if any, and texts without a begin token."""

    begins_texts = False

    def window(self, settings: ForeignSettings, context: int) -> int:
        """Give the window of those layers that have one, `context` where none has."""
        kinds = settings.values.get("layer_types")
        are_known = isinstance(kinds, list) and all(kind in _LAYER_TYPES for kind in kinds)
        settings.expect("layer_types", None, kinds if are_known else list(_LAYER_TYPES))
        if not settings.get("use_sliding_window", False):
            return context
        if are_known:
            has_window = _SLIDING in kinds
        else:
            has_window = settings.get("max_window_layers", 28) < settings.count("num_hidden_layers", 32)
        return settings.count("sliding_window", 4096) if has_window else context


class Qwen2(_Qwen):
    """Yang et al. 2024: Llama, with biases of queries, keys and values."""

    name, model_type = "Qwen2ForCausalLM", "qwen2"
    has = Llama.has - BIASES - {"heads of another width"} | {INPUT_BIASES}
    settings = (
        *_settings(151936, 4096, 32, 32, 32, 22016, 32768),
        *_GATED_AND_RMS,
        Setting("use_sliding_window", value=False),
    )

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        return super().derived(settings, weights, found) | {"bias": True, "bias_in": "attention_input"}

    def entries(self, config: GPTConfig, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Entry]:
        return self.tensors.entries(config, shapes, biased=("attention_input",))


class Qwen3(_Qwen):
    """Yang et al. 2025: Qwen 2 with norms of queries and keys, and a width of heads that is given."""

    name, model_type = "Qwen3ForCausalLM", "qwen3"
    usual_head_dim = 128
    has = Llama.has - {"biases of feed-forward networks"} | {"norms of queries and keys"}
    needs = {"qk_norm": True}
    biases = {"attention": "attention_bias"}
    settings = (
        *Qwen2.settings,
        _HEAD_DIM,
        Setting("attention_bias", value=lambda config: config.has_bias("attention")),
    )
    tensors = replace(
        Llama.tensors,
        parts={**Llama.tensors.parts, "query_norm": "self_attn.q_norm", "key_norm": "self_attn.k_norm"},
    )


class Phi3(Llama):
    """Abdin et al. 2024: Llama, with the maps of one input in one tensor, as ours."""

    name, model_type = "Phi3ForCausalLM", "phi3"
    begins_texts = False
    has = Mistral.has - {"heads of another width", *_FREQUENCIES}
    frequencies = ()
    biases = {}
    settings = (
        *_settings(32064, 3072, 32, 32, _as_many, 8192, 4096),
        Setting("hidden_act", value="silu"),
        Setting("rms_norm_eps", "norm_eps", 1e-5),
        Setting("resid_pdrop", "residual_dropout", 0.0),
        Setting("sliding_window", value=None),
    )
    tensors = replace(
        Llama.tensors,
        parts={**Llama.tensors.parts, "attention_input": "self_attn.qkv_proj", "up": "mlp.gate_up_proj"},
    )


class Starcoder2(_Rotary):
    """Lozhkov et al. 2024: Llama's positions and grouped queries, with GPT-2's norms and feed-forward networks."""

    name, model_type = "Starcoder2ForCausalLM", "starcoder2"
    begins_texts = False
    has = {"rotary positions", "LayerNorm", INPUT_BIASES, *_FREQUENCIES, *GROUPED, *BIASES, *PLAIN_ACTIVATIONS}
    fields = {"positions": "rotary"}
    settings = (
        *_settings(49152, 3072, 30, 24, 2, 12288, 4096),
        Setting("hidden_act", "activation", "gelu_pytorch_tanh"),
        Setting("norm_epsilon", "norm_eps", 1e-5),
        Setting("use_bias", value=lambda config: "map" in biased_parts(config)),
        Setting("sliding_window", value=None),
        Setting("embedding_dropout", "embedding_dropout", 0.0),
        Setting("residual_dropout", "residual_dropout", 0.0),
    )
    tensors = Tensors(
        layer="model.layers.{layer}.",
        parts={**_PARTS, "up": "mlp.c_fc", "down": "mlp.c_proj"},
        norm="model.norm",
    )

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        bias, norm_biases = settings.get("use_bias", True), (name for name in weights if name.endswith("norm.bias"))
        has_any = bias or not settings.is_own or any(weights[name].any() for name in norm_biases)
        return super().derived(settings, weights, found) | {"bias": has_any, "bias_in": "all" if bias else "norms"}

    def entries(self, config: GPTConfig, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Entry]:
        """Yield biases of norms even where nothing else has any, and those of maps everywhere or nowhere."""
        return self.tensors.entries(config, shapes, biased=biased_parts(config))

"""Our decoder-only model, and three classes that compute the same for some of its settings: GPT2LMHeadModel with
learned positions, LlamaForCausalLM and Starcoder2ForCausalLM with rotary ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from toolkit.errors import ModelError
from toolkit.interop.architecture import (
    Architecture,
    Entry,
    Table,
    linear,
    norm,
    read_activation,
    same_tables,
    untied_note,
    written_activation,
)
from toolkit.interop.foreign_settings import ForeignSettings
from toolkit.interop.foreign_weights import ForeignWeights
from toolkit.models.gpt import GPTConfig

_EMBEDDING, _OUTPUT, _LM_HEAD = "trunk.input.embedding.table", "output.table", "lm_head.weight"


class LanguageModel(Architecture):
    config_class = GPTConfig
    table: str  # name of the embedding
    ties: ClassVar[bool] = True  # whether that is the output table too, where config.json does not say

    def tables(self, config: GPTConfig) -> Sequence[Table]:
        if config.tie:
            return [Table(_EMBEDDING, (self.table, _LM_HEAD), (self.table,))]
        return [Table(_EMBEDDING, (self.table,), (self.table,)), Table(_OUTPUT, (_LM_HEAD,), (_LM_HEAD,))]

    def is_tied(self, settings: ForeignSettings, weights: ForeignWeights) -> bool:
        """Whether the output table is the embedding: not where a file has two that differ, whatever it says."""
        tied = settings.get("tie_word_embeddings", self.ties)
        return tied and same_tables(weights, self.table, _LM_HEAD)

    def notes(self, settings: ForeignSettings, weights: ForeignWeights, config: GPTConfig) -> list[str]:
        is_other = settings.get("tie_word_embeddings", self.ties) and not config.tie
        return [untied_note(_LM_HEAD, "tie_word_embeddings")] if is_other else []


class GPT2(LanguageModel):
    """Radford et al. 2019.  Its maps are called Conv1D and are (inputs, outputs), as ours."""

    name, model_type, prefix = "GPT2LMHeadModel", "gpt2", "transformer."
    begins_texts = False
    table = "transformer.wte.weight"
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }

    def read_config(self, settings: ForeignSettings, weights: ForeignWeights) -> GPTConfig:
        settings.expect("scale_attn_weights", True)
        for name in ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention"):
            settings.expect(name, False)
        width = settings.count("n_embd", 768)
        residual = settings.get("resid_pdrop", 0.1)
        return GPTConfig(
            vocab_size=settings.count("vocab_size", 50257),
            width=width,
            layers=settings.count("n_layer", 12),
            heads=settings.count("n_head", 12),
            feed_forward=settings.count("n_inner", 4 * width),
            activation=read_activation(settings, "activation_function", "gelu_new"),
            norm_eps=settings.get("layer_norm_epsilon", 1e-5),
            bias=True,
            positions="learned",
            max_length=settings.count("n_positions", 1024),
            tie=self.is_tied(settings, weights),
            embedding_dropout=settings.get("embd_pdrop", 0.1),
            attention_dropout=settings.get("attn_pdrop", 0.1),
            residual_dropout=residual,
        )

    def write_config(self, config: GPTConfig) -> dict[str, Any]:
        return {
            "n_embd": config.width,
            "n_layer": config.layers,
            "n_head": config.heads,
            "n_inner": config.feed_forward,
            "activation_function": written_activation(config.activation),
            "layer_norm_epsilon": config.norm_eps,
            "n_positions": config.max_length,
            "tie_word_embeddings": config.tie,
            "embd_pdrop": config.embedding_dropout,
            "attn_pdrop": config.attention_dropout,
            "resid_pdrop": config.residual_dropout,
        }

    def misfits(self, config: GPTConfig) -> list[str]:
        """Sinusoidal positions fit: they are written as the table that they are."""
        wrong = ["rotary positions"] if config.positions == "rotary" else []
        return wrong + _misfits(config, rms=False, gated=False, grouped=False)

    def entries(self, config: GPTConfig) -> Iterator[Entry]:
        width = config.width
        yield Entry("trunk.input.positions.embedding.table", {"transformer.wpe.weight": width})
        for layer in range(config.layers):
            ours, theirs = f"trunk.blocks.{layer}", f"transformer.h.{layer}"
            yield from norm(f"{ours}.around_attention.norm", f"{theirs}.ln_1", width)
            yield from norm(f"{ours}.around_feed_forward.norm", f"{theirs}.ln_2", width)
            maps = {
                "attention.query_key_value": {f"{theirs}.attn.c_attn": 3 * width},
                "attention.output": {f"{theirs}.attn.c_proj": width},
                "feed_forward.expand": {f"{theirs}.mlp.c_fc": config.feed_forward},
                "feed_forward.contract": {f"{theirs}.mlp.c_proj": width},
            }
            for name, outputs in maps.items():
                yield from linear(f"{ours}.{name}", outputs, transposed=False)
        yield from norm("trunk.norm", "transformer.ln_f", width)

    def is_redundant(self, name: str, weights: ForeignWeights, config: GPTConfig) -> bool:
        """Older files hold the causal mask, and the score of what it hides."""
        return name.endswith((".attn.bias", ".attn.masked_bias"))


class _Rotary(LanguageModel):
    """What Llama and Starcoder2 share: rotary positions, grouped queries, and most names."""

    table = "model.embed_tokens.weight"

    usual: ClassVar[dict[str, Any]]  # what stands for settings that config.json leaves out

    def _read(self, settings: ForeignSettings, weights: ForeignWeights, **own: Any) -> GPTConfig:
        """own: the settings that the two call by different names, or only one of them has."""

        def count(name: str) -> int:
            return settings.count(name, self.usual[name])

        width, heads, context = count("hidden_size"), count("num_attention_heads"), count("max_position_embeddings")
        key_value_heads = settings.count("num_key_value_heads", self.usual.get("num_key_value_heads", heads))
        settings.expect("head_dim", None, width // heads)
        kinds = settings.values.get("layer_types")
        settings.expect("layer_types", None, ["full_attention"] * (len(kinds) if isinstance(kinds, list) else 0))
        settings.expect("per_layer_config", None)
        return GPTConfig(
            vocab_size=count("vocab_size"),
            width=width,
            layers=count("num_hidden_layers"),
            heads=heads,
            key_value_heads=0 if key_value_heads == heads else key_value_heads,
            feed_forward=count("intermediate_size"),
            positions="rotary",
            rotary_base=_rotary_base(settings),
            max_length=min([context, *_shorter_contexts(settings, context).values()]),
            tie=self.is_tied(settings, weights),
            attention_dropout=settings.get("attention_dropout", 0.0),
            **own,
        )

    def notes(self, settings: ForeignSettings, weights: ForeignWeights, config: GPTConfig) -> list[str]:
        context = settings.count("max_position_embeddings", self.usual["max_position_embeddings"])
        shorter = _shorter_contexts(settings, context).items()
        return [
            *super().notes(settings, weights, config),
            *(f"{why}: it reads at most {most:,} tokens here" for why, most in shorter),
        ]

    def _entries(self, config: GPTConfig, bias: bool, norm_bias: bool) -> Iterator[Entry]:
        """Everything but the feed-forward networks.  bias: of attention."""
        width = config.width
        key_value = (config.key_value_heads or config.heads) * width // config.heads
        for layer in range(config.layers):
            ours, theirs = f"trunk.blocks.{layer}", f"model.layers.{layer}"
            attention = f"{theirs}.self_attn"
            outputs = {f"{attention}.{part}_proj": key_value if part in "kv" else width for part in "qkv"}
            yield from linear(f"{ours}.attention.query_key_value", outputs, bias)
            yield from linear(f"{ours}.attention.output", {f"{attention}.o_proj": width}, bias)
            yield from norm(f"{ours}.around_attention.norm", f"{theirs}.input_layernorm", width, norm_bias)
            yield from norm(f"{ours}.around_feed_forward.norm", f"{theirs}.post_attention_layernorm", width, norm_bias)
        yield from norm("trunk.norm", "model.norm", width, norm_bias)

    def is_redundant(self, name: str, weights: ForeignWeights, config: GPTConfig) -> bool:
        """Files of the first years hold how fast the rotary positions turn."""
        return name.endswith(".rotary_emb.inv_freq")


class Llama(_Rotary):
    """Touvron et al. 2023."""

    name, model_type = "LlamaForCausalLM", "llama"
    usual: ClassVar[dict[str, Any]] = {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 11008,
        "max_position_embeddings": 2048,
    }
    ties = False

    def read_config(self, settings: ForeignSettings, weights: ForeignWeights) -> GPTConfig:
        settings.expect("hidden_act", "silu", "swish")
        settings.expect("pretraining_tp", 1)
        found = {"attention": settings.get("attention_bias", False), "feed_forward": settings.get("mlp_bias", False)}
        biases = [part for part, has in found.items() if has]
        return self._read(
            settings,
            weights,
            activation="swiglu",
            norm="rms",
            norm_eps=settings.get("rms_norm_eps", 1e-6),
            bias=bool(biases),
            bias_in="all" if len(biases) != 1 else biases[0],
        )

    def write_config(self, config: GPTConfig) -> dict[str, Any]:
        return _write_rotary(config) | {
            "hidden_act": "silu",
            "rms_norm_eps": config.norm_eps,
            "attention_bias": config.has_bias("attention"),
            "mlp_bias": config.has_bias("feed_forward"),
            "head_dim": config.width // config.heads,
        }

    def misfits(self, config: GPTConfig) -> list[str]:
        wrong = [] if config.positions == "rotary" else [f"{config.positions} positions"]
        return wrong + _misfits(config, rms=True, gated=True, grouped=True)

    def entries(self, config: GPTConfig) -> Iterator[Entry]:
        bias = config.has_bias("feed_forward")
        yield from self._entries(config, config.has_bias("attention"), norm_bias=False)
        for layer in range(config.layers):
            ours, theirs = f"trunk.blocks.{layer}.feed_forward", f"model.layers.{layer}.mlp"
            halves = {f"{theirs}.gate_proj": config.feed_forward, f"{theirs}.up_proj": config.feed_forward}
            yield from linear(f"{ours}.expand", halves, bias)
            yield from linear(f"{ours}.contract", {f"{theirs}.down_proj": config.width}, bias)


class Starcoder2(_Rotary):
    """Lozhkov et al. 2024: Llama's positions and grouped queries, with GPT-2's norms and feed-forward networks."""

    name, model_type = "Starcoder2ForCausalLM", "starcoder2"
    begins_texts = False
    usual: ClassVar[dict[str, Any]] = {
        "vocab_size": 49152,
        "hidden_size": 3072,
        "num_hidden_layers": 30,
        "num_attention_heads": 24,
        "num_key_value_heads": 2,
        "intermediate_size": 12288,
        "max_position_embeddings": 4096,
    }

    def read_config(self, settings: ForeignSettings, weights: ForeignWeights) -> GPTConfig:
        bias, norm_biases = settings.get("use_bias", True), (name for name in weights if name.endswith("norm.bias"))
        return self._read(
            settings,
            weights,
            activation=read_activation(settings, "hidden_act", "gelu_pytorch_tanh"),
            norm_eps=settings.get("norm_epsilon", 1e-5),
            bias=bias or not settings.is_own or any(weights[name].any() for name in norm_biases),
            bias_in="all" if bias else "norms",
            embedding_dropout=settings.get("embedding_dropout", 0.0),
            residual_dropout=settings.get("residual_dropout", 0.0),
        )

    def write_config(self, config: GPTConfig) -> dict[str, Any]:
        return _write_rotary(config) | {
            "hidden_act": written_activation(config.activation),
            "norm_epsilon": config.norm_eps,
            "use_bias": _maps_have_bias(config),
            "sliding_window": None,
            "embedding_dropout": config.embedding_dropout,
            "residual_dropout": config.residual_dropout,
        }

    def misfits(self, config: GPTConfig) -> list[str]:
        wrong = [] if config.positions == "rotary" else [f"{config.positions} positions"]
        return wrong + _misfits(config, rms=False, gated=False, grouped=True)

    def entries(self, config: GPTConfig) -> Iterator[Entry]:
        """Its norms have biases, even where nothing else has."""
        bias = _maps_have_bias(config)
        yield from self._entries(config, bias, norm_bias=True)
        for layer in range(config.layers):
            ours, theirs = f"trunk.blocks.{layer}.feed_forward", f"model.layers.{layer}.mlp"
            yield from linear(f"{ours}.expand", {f"{theirs}.c_fc": config.feed_forward}, bias)
            yield from linear(f"{ours}.contract", {f"{theirs}.c_proj": config.width}, bias)


def _maps_have_bias(config: GPTConfig) -> bool:
    return config.has_bias("attention") or config.has_bias("feed_forward")


def _misfits(config: GPTConfig, rms: bool, gated: bool, grouped: bool) -> list[str]:
    """What the settings have that a class has not, or lack."""
    wrong = []
    if (config.norm == "rms") != rms:
        wrong.append("RMSNorm" if config.norm == "rms" else "LayerNorm")
    if (config.activation == "swiglu") != gated:
        wrong.append(config.activation)
    if config.key_value_heads not in (0, config.heads) and not grouped:
        wrong.append("grouped queries")
    if config.output_bias:
        wrong.append("output_bias")
    return wrong


def _rotary_base(settings: ForeignSettings) -> float:
    """How slow the slowest turn is.

    Raises ModelError for positions that are scaled within the context or turn only a part of each head.
    """
    name, section = _rotary_section(settings)
    kind = _rotary_kind(section)
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


def _rotary_section(settings: ForeignSettings) -> tuple[str, dict[str, Any]]:
    """What is said of rotary positions, under the one of two names that counts, with that name."""
    scaling = settings.section("rope_scaling")
    return ("rope_scaling", scaling) if scaling else ("rope_parameters", settings.section("rope_parameters"))


def _rotary_kind(section: dict[str, Any]) -> Any:
    return section.get("rope_type", section.get("type", "default"))


def _shorter_contexts(settings: ForeignSettings, context: int) -> dict[str, int]:
    """Why a model reads fewer tokens here than elsewhere, and how many: so far both compute the same."""
    found = {}
    window = settings.count("sliding_window", context)
    if window < context:
        found[f"it attends to no more than {window:,} tokens (sliding_window)"] = window
    section = _rotary_section(settings)[1]
    if _rotary_kind(section) == "dynamic":
        original = section.get("original_max_position_embeddings")
        most = context if original is None else settings.typed("original_max_position_embeddings", original, 0)
        found["its rotary positions are stretched in longer texts (dynamic)"] = min(most, context)
    return found


def _write_rotary(config: GPTConfig) -> dict[str, Any]:
    return {
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.key_value_heads or config.heads,
        "intermediate_size": config.feed_forward,
        "max_position_embeddings": config.max_length,
        "rope_theta": config.rotary_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
        "tie_word_embeddings": config.tie,
        "attention_dropout": config.attention_dropout,
    }

"""The encoder-decoders of transformers, Marian, Pegasus and M2M100, each as a table in the language of `mapping`."""
# ruff: noqa: RUF012  (the classes are tables)

from collections.abc import Mapping
from typing import Any

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.functional.positions import sinusoidal_positions
from toolkit.interop.architectures import Architecture, Setting
from toolkit.interop.hugging_face_files import LM_HEAD, ForeignSettings, ForeignWeights, untied_note
from toolkit.interop.mapping import OUTPUT, SOURCE, TARGET, Table, Tensors
from toolkit.models.base import LAYOUTS
from toolkit.models.seq2seq import Seq2SeqConfig

_SHARED = "model.shared.weight"
_ENCODER_TABLE, _DECODER_TABLE = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"


class EncoderDecoder(Architecture):
    """All have everything in common but where the norms are, how tables are shared, and the waves of positions."""

    config_class = Seq2SeqConfig
    output_bias = "final_logits_bias"
    aliases = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }
    tensors = Tensors(
        layer="model.{side}.layers.{layer}.",
        parts={
            "attention_norm": "self_attn_layer_norm",
            "attention_input": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
            "attention_output": "self_attn.out_proj",
            "cross_norm": "encoder_attn_layer_norm",
            "cross_query": "encoder_attn.q_proj",
            "cross_key_value": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
            "cross_output": "encoder_attn.out_proj",
            "feed_forward_norm": "final_layer_norm",
            "up": "fc1",
            "down": "fc2",
        },
        norm="model.{side}.layer_norm",
    )
    expected = {
        **dict.fromkeys(("normalize_embedding", "add_bias_logits", "is_decoder"), (False,)),
        "static_position_embeddings": (True,),
    }

    def declared_tie(self, settings: ForeignSettings) -> str:
        """Say which tables are one by config.json, as `Seq2SeqConfig.tie` calls it."""
        raise NotImplementedError

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        settings.expect("decoder_vocab_size", None, found["vocab_size"])
        return {"tie": self._tie(settings, weights), "embedding_dropout": found["residual_dropout"]}

    def _tie(self, settings: ForeignSettings, weights: ForeignWeights) -> str:
        """Say which tables are one: those that config.json says, unless a file has two that differ; of a model that
        ties nothing, those of decoder and output where they are equal all the same.
        """
        declared, output = self.declared_tie(settings), [_DECODER_TABLE, LM_HEAD]
        if declared == "all" and weights.are_equal(_SHARED, _ENCODER_TABLE, *output):
            return "all"
        are_there = weights.keys() >= {*output}
        if declared == "all" and not are_there:
            output.append(_SHARED)  # which stands for the missing one
        return "decoder" if (are_there or declared != "none") and weights.are_equal(*output) else "none"

    def notes(self, settings: ForeignSettings, weights: ForeignWeights, config: Seq2SeqConfig) -> list[str]:
        declared, notes = self.declared_tie(settings), []
        if declared not in (config.tie, "none"):
            notes.append(untied_note(LM_HEAD if config.tie == "none" else _ENCODER_TABLE, "config.json"))
        rounded = [
            name for name in weights if name.endswith(_POSITIONS) and not _are_waves(weights[name], config, _EXACT)
        ]
        return notes + [f"{name} is stored rounded: positions are exact here" for name in rounded[:1]]

    def is_redundant(self, name: str, weights: ForeignWeights, config: Seq2SeqConfig) -> bool:
        """True for tables of positions, which some files have.

        Raises ModelError where they are not the waves that we add.
        """
        if name == _SHARED:  # where no table is shared it is nobody's
            return True
        if not name.endswith((_POSITIONS, _FAIRSEQ_POSITIONS)):
            return False
        if not _are_waves(weights[name], config, _ROUNDED):
            raise ModelError(f"{weights.where(name)}: {name} has learned positions, which a {self.name} cannot have")
        return True


_POSITIONS, _FAIRSEQ_POSITIONS = ".embed_positions.weight", ".embed_positions.weights"
# The most that stored positions may be from exact ones: as float32, and as bfloat16, which keeps eight bits.
_EXACT, _ROUNDED = 1e-5, 2e-3


def _are_waves(table: Array, config: Seq2SeqConfig, near: float) -> bool:
    """True for a table of the waves that we add, this exactly."""
    if table.ndim != 2 or table.shape[1] != config.d_model:
        return False
    layout = LAYOUTS[config.positions]
    table = table[M2M100.padding + 1 :] if layout == "fairseq" else table
    return np.allclose(table, sinusoidal_positions(*table.shape, layout), rtol=0, atol=near)


def _encoder_decoder_settings(
    vocab_size: int, activation: str = "gelu", scale_embedding: bool = False, attention_dropout: float = 0.0
) -> tuple[Setting, ...]:
    """Give the settings of all, from what stands for those that config.json leaves out."""
    return (
        Setting("vocab_size", "vocab_size", vocab_size),
        Setting("d_model", "d_model", 1024),
        Setting("encoder_layers", "encoder_layers", 12),
        Setting("decoder_layers", "decoder_layers", 12),
        Setting("encoder_attention_heads", "num_heads", 16, same=("decoder_attention_heads",)),
        Setting("encoder_ffn_dim", "d_ff", 4096, same=("decoder_ffn_dim",)),
        Setting("activation_function", "activation", activation),
        Setting("max_position_embeddings", "max_length", 1024),
        Setting("scale_embedding", "scale_embedding", scale_embedding),
        Setting("static_position_embeddings", value=True),
        Setting("dropout", "residual_dropout", 0.1),
        Setting("attention_dropout", "attention_dropout", attention_dropout),
        Setting("activation_dropout", "activation_dropout", 0.0),
        Setting("encoder_layerdrop", value=0.0),
        Setting("decoder_layerdrop", value=0.0),
        Setting("is_encoder_decoder", value=True),
    )


class Marian(EncoderDecoder):
    """Junczys-Dowmunt et al. 2018."""

    name, model_type = "MarianMTModel", "marian"
    has = {"post-norm", "sinusoidal_halves positions", "output_bias"}
    fields = {"norm_position": "post", "positions": "sinusoidal_halves"}
    settings = (
        *_encoder_decoder_settings(58101),
        Setting("share_encoder_decoder_embeddings", value=lambda config: config.tie == "all"),
        Setting("tie_word_embeddings", value=lambda config: config.tie != "none"),
        Setting("decoder_vocab_size", value=lambda config: config.vocab_size),
    )
    expected = EncoderDecoder.expected | dict.fromkeys(("normalize_before", "add_final_layer_norm"), (False,))
    tables = {
        "all": (Table(SOURCE, (_SHARED, _ENCODER_TABLE, _DECODER_TABLE, LM_HEAD)),),
        "decoder": (
            Table(SOURCE, (_ENCODER_TABLE, _SHARED)),
            Table(TARGET, (_DECODER_TABLE, LM_HEAD, _SHARED)),
        ),
        "none": (
            Table(SOURCE, (_ENCODER_TABLE, _SHARED)),
            Table(TARGET, (_DECODER_TABLE, _SHARED)),
            Table(OUTPUT, (LM_HEAD,)),
        ),
    }

    def declared_tie(self, settings: ForeignSettings) -> str:
        if not settings.get("tie_word_embeddings", True):
            return "none"
        return "all" if settings.get("share_encoder_decoder_embeddings", True) else "decoder"


class Pegasus(EncoderDecoder):
    """Zhang et al. 2020.  Either all tables are one here or none: two that are one are written twice."""

    name, model_type = "PegasusForConditionalGeneration", "pegasus"
    has = {"pre-norm", "sinusoidal_halves positions", "output_bias"}
    fields = {"norm_position": "pre", "positions": "sinusoidal_halves"}
    settings = (
        *_encoder_decoder_settings(50265),
        Setting("normalize_before", value=True),
        Setting("add_final_layer_norm", value=True),
        Setting("tie_word_embeddings", value=lambda config: config.tie == "all"),
    )
    expected = EncoderDecoder.expected | dict.fromkeys(("normalize_before", "add_final_layer_norm"), (True,))
    tables = {
        "all": Marian.tables["all"],
        "decoder": (
            Table(SOURCE, (_ENCODER_TABLE, _SHARED), written=(_ENCODER_TABLE, _SHARED)),
            Table(TARGET, (_DECODER_TABLE, LM_HEAD, _SHARED), written=(_DECODER_TABLE, LM_HEAD)),
        ),
        "none": (
            Table(SOURCE, (_ENCODER_TABLE, _SHARED), written=(_ENCODER_TABLE, _SHARED)),
            *Marian.tables["none"][1:],
        ),
    }

    def declared_tie(self, settings: ForeignSettings) -> str:
        return "all" if settings.get("tie_word_embeddings", True) else "none"


class M2M100(Pegasus):
    """Fan et al. 2020, and NLLB's dense models (NLLB Team et al. 2022): Pegasus' norms and tables, fairseq's positions.

    Training drops no layers here, whatever encoder_layerdrop says.
    """

    name, model_type = "M2M100ForConditionalGeneration", "m2m_100"
    output_bias, padding = None, 1  # from which positions are counted
    has = {"pre-norm", "sinusoidal_fairseq positions"}
    fields = {"norm_position": "pre", "positions": "sinusoidal_fairseq"}
    settings = (
        *_encoder_decoder_settings(128112, "relu", scale_embedding=True, attention_dropout=0.1),
        Setting("tie_word_embeddings", value=lambda config: config.tie == "all"),
    )
    expected = Pegasus.expected | {"pad_token_id": (padding,)}

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        if self.padding in settings.tokens("decoder_start_token_id")[:1]:
            raise ModelError(
                f"{settings.path} has decoder_start_token_id {self.padding}, which is padding: it has no position there"
            )
        return super().derived(settings, weights, found)

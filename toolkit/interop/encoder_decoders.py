"""Our encoder-decoder, and the two classes that compute the same: MarianMTModel with a norm after each sub-layer,
PegasusForConditionalGeneration with a norm before it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.functional.positions import sinusoidal_positions
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
from toolkit.models.seq2seq import Seq2SeqConfig

_SHARED, _LM_HEAD = "model.shared.weight", "lm_head.weight"
_ENCODER_TABLE, _DECODER_TABLE = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"

# How far stored positions may be from exact ones: as float32, and as bfloat16, which keeps eight bits.
_EXACT, _ROUNDED = 1e-5, 2e-3


class EncoderDecoder(Architecture):
    """What Marian and Pegasus have in common: everything but where the norms are and how tables are shared."""

    config_class = Seq2SeqConfig
    output_bias = "final_logits_bias"
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }
    norm: ClassVar[str]
    vocab_size: ClassVar[int]  # where config.json does not say

    def read_config(self, settings: ForeignSettings, weights: ForeignWeights) -> Seq2SeqConfig:
        self._refuse(settings)
        dropout = settings.get("dropout", 0.1)
        return Seq2SeqConfig(
            vocab_size=settings.count("vocab_size", self.vocab_size),
            width=settings.count("d_model", 1024),
            heads=settings.count("encoder_attention_heads", 16),
            feed_forward=settings.count("encoder_ffn_dim", 4096),
            encoder_layers=settings.count("encoder_layers", 12),
            decoder_layers=settings.count("decoder_layers", 12),
            activation=read_activation(settings, "activation_function", "gelu"),
            norm=self.norm,
            positions="sinusoidal_halves",
            max_length=settings.count("max_position_embeddings", 1024),
            tie=self._tie(settings, weights),
            scale_embedding=settings.get("scale_embedding", False),
            embedding_dropout=dropout,
            attention_dropout=settings.get("attention_dropout", 0.0),
            activation_dropout=settings.get("activation_dropout", 0.0),
            residual_dropout=dropout,
        )

    def declared_tie(self, settings: ForeignSettings) -> str:
        """Which tables are one, by config.json: as `Seq2SeqConfig.tie` calls it."""
        raise NotImplementedError

    def _tie(self, settings: ForeignSettings, weights: ForeignWeights) -> str:
        """Which tables are one: those that config.json says, unless a file has two that differ; of a model that ties
        nothing, those of decoder and output where they are equal all the same.
        """
        declared, output = self.declared_tie(settings), [_DECODER_TABLE, _LM_HEAD]
        if declared == "all" and same_tables(weights, _SHARED, _ENCODER_TABLE, *output):
            return "all"
        are_there = weights.keys() >= {*output}
        if declared == "all" and not are_there:
            output.append(_SHARED)  # which stands for the missing one
        return "decoder" if (are_there or declared != "none") and same_tables(weights, *output) else "none"

    def notes(self, settings: ForeignSettings, weights: ForeignWeights, config: Seq2SeqConfig) -> list[str]:
        declared, notes = self.declared_tie(settings), []
        if declared not in (config.tie, "none"):
            notes.append(untied_note(_LM_HEAD if config.tie == "none" else _ENCODER_TABLE, "config.json"))
        rounded = [name for name in weights if _are_positions(name) and not _are_waves(weights[name], config, _EXACT)]
        return notes + [f"{name} is stored rounded: positions are exact here" for name in rounded[:1]]

    def _refuse(self, settings: ForeignSettings) -> None:
        """Settings that other encoder-decoders have, or that say twice how large something is."""
        before = self.norm == "pre"
        settings.expect("normalize_before", before)
        settings.expect("add_final_layer_norm", before)
        for name in ("normalize_embedding", "add_bias_logits", "is_decoder"):
            settings.expect(name, False)
        settings.expect("static_position_embeddings", True)
        for name, default in (("attention_heads", 16), ("ffn_dim", 4096)):
            settings.expect(f"decoder_{name}", settings.get(f"encoder_{name}", default))
        settings.expect("decoder_vocab_size", None, settings.get("vocab_size", self.vocab_size))

    def write_config(self, config: Seq2SeqConfig) -> dict[str, Any]:
        return {
            "d_model": config.width,
            "encoder_layers": config.encoder_layers,
            "decoder_layers": config.decoder_layers,
            "encoder_attention_heads": config.heads,
            "decoder_attention_heads": config.heads,
            "encoder_ffn_dim": config.feed_forward,
            "decoder_ffn_dim": config.feed_forward,
            "activation_function": written_activation(config.activation),
            "max_position_embeddings": config.max_length,
            "scale_embedding": config.scale_embedding,
            "static_position_embeddings": True,
            "dropout": config.residual_dropout,
            "attention_dropout": config.attention_dropout,
            "activation_dropout": config.activation_dropout,
            "encoder_layerdrop": 0.0,
            "decoder_layerdrop": 0.0,
            "is_encoder_decoder": True,
        }

    def misfits(self, config: Seq2SeqConfig) -> list[str]:
        wrong = []
        if config.norm != self.norm:
            wrong.append(f"{config.norm}-norm")
        if config.positions == "learned":
            wrong.append("learned positions")
        return wrong

    def entries(self, config: Seq2SeqConfig) -> Iterator[Entry]:
        for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
            for layer in range(layers):
                yield from _block(f"{side}.{layer}", f"model.{side}.layers.{layer}", config, side == "decoder")
            if self.norm == "pre":
                yield from norm(f"{side}_norm", f"model.{side}.layer_norm", config.width)

    def is_redundant(self, name: str, weights: ForeignWeights, config: Seq2SeqConfig) -> bool:
        """Tables of positions, which some files have.  Raises ModelError where they are not the waves that we add."""
        if name == _SHARED:  # where no table is shared it is nobody's
            return True
        if not _are_positions(name):
            return False
        if not _are_waves(weights[name], config, _ROUNDED):
            raise ModelError(f"{weights.where(name)}: {name} has learned positions, which a {self.name} cannot have")
        return True


class Marian(EncoderDecoder):
    name, model_type, norm = "MarianMTModel", "marian", "post"
    vocab_size = 58101

    def declared_tie(self, settings: ForeignSettings) -> str:
        if not settings.get("tie_word_embeddings", True):
            return "none"
        return "all" if settings.get("share_encoder_decoder_embeddings", True) else "decoder"

    def write_config(self, config: Seq2SeqConfig) -> dict[str, Any]:
        sharing = {
            "share_encoder_decoder_embeddings": config.tie == "all",
            "tie_word_embeddings": config.tie != "none",
            "decoder_vocab_size": config.vocab_size,
        }
        return super().write_config(config) | sharing

    def tables(self, config: Seq2SeqConfig) -> Sequence[Table]:
        return _tables(config.tie, encoder=(_ENCODER_TABLE,), decoder=(_DECODER_TABLE,))


class Pegasus(EncoderDecoder):
    name, model_type, norm = "PegasusForConditionalGeneration", "pegasus", "pre"
    vocab_size = 50265

    def declared_tie(self, settings: ForeignSettings) -> str:
        return "all" if settings.get("tie_word_embeddings", True) else "none"

    def write_config(self, config: Seq2SeqConfig) -> dict[str, Any]:
        """Either all tables are one here or none: two that are one are written twice."""
        order = {"normalize_before": True, "add_final_layer_norm": True}
        return super().write_config(config) | order | {"tie_word_embeddings": config.tie == "all"}

    def tables(self, config: Seq2SeqConfig) -> Sequence[Table]:
        decoder = (_DECODER_TABLE, _LM_HEAD) if config.tie == "decoder" else (_DECODER_TABLE,)
        return _tables(config.tie, encoder=(_ENCODER_TABLE, _SHARED), decoder=decoder)


def _tables(tie: str, encoder: tuple[str, ...], decoder: tuple[str, ...]) -> list[Table]:
    """encoder, decoder: under which names the tables of source and target are written where they are two."""
    if tie == "all":
        return [Table("source.embedding.table", (_SHARED, _ENCODER_TABLE, _DECODER_TABLE, _LM_HEAD), (_SHARED,))]
    source = Table("source.embedding.table", (_ENCODER_TABLE, _SHARED), encoder)
    if tie == "decoder":
        return [source, Table("target.embedding.table", (_DECODER_TABLE, _LM_HEAD, _SHARED), decoder)]
    target = Table("target.embedding.table", (_DECODER_TABLE, _SHARED), decoder)
    return [source, target, Table("output.table", (_LM_HEAD,), (_LM_HEAD,))]


def _are_positions(name: str) -> bool:
    return name.endswith(".embed_positions.weight")


def _are_waves(table: Array, config: Seq2SeqConfig, near: float) -> bool:
    """Whether a table has the waves that we add, this exactly."""
    if table.ndim != 2 or table.shape[1] != config.width:
        return False
    return np.allclose(table, sinusoidal_positions(*table.shape, "halves"), rtol=0, atol=near)


def _block(ours: str, theirs: str, config: Seq2SeqConfig, is_decoder: bool) -> Iterator[Entry]:
    """One layer of encoder or decoder; all maps and norms have biases there."""
    width, hidden = config.width, config.feed_forward
    attention = f"{theirs}.self_attn"
    fused = dict.fromkeys((f"{attention}.{part}_proj" for part in "qkv"), width)
    yield from linear(f"{ours}.attention.query_key_value", fused)
    yield from linear(f"{ours}.attention.output", {f"{attention}.out_proj": width})
    yield from norm(f"{ours}.around_attention.norm", f"{theirs}.self_attn_layer_norm", width)
    if is_decoder:
        attention, own = f"{theirs}.encoder_attn", f"{ours}.cross_attention"
        yield from linear(f"{own}.query", {f"{attention}.q_proj": width})
        yield from linear(f"{own}.key_value", dict.fromkeys((f"{attention}.{part}_proj" for part in "kv"), width))
        yield from linear(f"{own}.output", {f"{attention}.out_proj": width})
        yield from norm(f"{ours}.around_cross_attention.norm", f"{theirs}.encoder_attn_layer_norm", width)
    yield from linear(f"{ours}.feed_forward.expand", {f"{theirs}.fc1": hidden})
    yield from linear(f"{ours}.feed_forward.contract", {f"{theirs}.fc2": width})
    yield from norm(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm", width)

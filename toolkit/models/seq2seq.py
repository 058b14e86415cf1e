"""The encoder-decoder transformer (Vaswani et al. 2017) for translation and other mappings of sequences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from toolkit.display import short_repr
from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import LossSums
from toolkit.models.base import InputEmbedding, ModelConfig, added_positions
from toolkit.models.folding import fold_norms
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.blocks import Block, DecoderBlock, DecoderStack, Residual, Stack
from toolkit.nn.layers import Embedding, FeedForward, LayerNorm, Output
from toolkit.nn.module import Model, Module, Parameter, normal, zeros
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS


@dataclass(frozen=True)
class Seq2SeqConfig(ModelConfig):
    """The shape of a `Seq2Seq`."""

    vocab_size: int = 4000  # tokens that source and target share; training takes fewer where a corpus offers fewer
    d_model: int = 256  # D, of the residual stream
    num_heads: int = 8  # attention heads; they divide d_model
    d_ff: int = 1024  # F, inside the feed-forward networks
    encoder_layers: int = 3
    decoder_layers: int = 3
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"
    norm_position: Literal["pre", "post"] = "pre"  # layer norm before each sub-layer, or after its residual sum
    bias: bool = True  # biases in linear maps and norms
    positions: Literal["sinusoidal", "sinusoidal_halves", "sinusoidal_fairseq", "learned"] = "sinusoidal"
    max_length: int = 256  # tokens with end mark: the longest to train on, and all that learned positions know
    tie: Literal["none", "decoder", "all"] = "all"  # which embeddings are one table: target and output, or source too
    scale_embedding: bool = True  # embeddings are multiplied by √D where they are read
    output_bias: bool = False  # a bias of every token's score
    fixed_output_bias: bool = False  # training leaves that bias as it is; import sets it
    begin_row: int = BOS  # the row of the table that <s> reads; import sets it where another token begins outputs
    ignore_case: bool = False  # read sources in lower case: a small corpus then teaches every word in one form
    split_sentences: bool = True  # translate every sentence of a text by itself, and copy what has no words
    embedding_dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.1
    residual_dropout: float = 0.1

    __repr__ = short_repr

    def has_bias(self, part: str) -> bool:
        """True where the maps of "attention" or "feed_forward", or the layer "norms", have biases: all, or none."""
        return self.bias


class Seq2SeqBatch(NamedTuple):
    """Sentence pairs as rows, teacher forcing included: inputs = [begin] + target, labels = target + [end].

    Source sentences may stand in another order than their targets; `rows` knows which memory belongs to which.
    """

    sources: Array  # (M,) ids
    source_rows: Rows
    inputs: Array  # (N,) ids
    labels: Array  # (N,) ids
    rows: Rows

    __repr__ = short_repr


def source_rows(sources: Sequence[Sequence[int] | Array]) -> tuple[Array, Rows]:
    """Put source sentences one after the other, an end mark after each: ids (M,), and their rows."""
    end = np.array([EOS])
    ids = np.concatenate([part for source in sources for part in (source, end)]).astype(np.int64)
    return ids, Rows(np.array([len(source) + 1 for source in sources]))


def translation_batch(sources: Sequence[Array], targets: Sequence[Array]) -> Seq2SeqBatch:
    """Put pairs into rows with teacher forcing: the decoder reads [begin] + target and is to say target + [end].

    Sources are read in the order of their lengths, so that the encoder too meets runs of equal length; targets stay
    in the order given, which should be by length.
    """
    order = np.argsort([len(source) for source in sources], kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    source_ids, memory = source_rows([sources[index] for index in order])
    lengths = np.array([len(target) + 1 for target in targets])
    text = np.concatenate([part for target in targets for part in (target, [EOS])]).astype(np.int64)
    rows = Rows(lengths, memory=memory, memory_of=place)
    inputs = np.empty_like(text)
    inputs[1:] = text[:-1]
    inputs[rows.starts] = BOS
    return Seq2SeqBatch(source_ids, memory, inputs, text, rows)


class Seq2Seq(Model):
    """An encoder that reads the source, and a decoder that writes the target while attending to what was read."""

    kind = "seq2seq"

    def __init__(self, config: Seq2SeqConfig):
        self.config = config
        d_model, size = config.d_model, config.vocab_size
        scale = math.sqrt(d_model) if config.scale_embedding else 1.0
        dropout = config.embedding_dropout
        self.source = InputEmbedding(Embedding(size, d_model, scale), added_positions(config), dropout)
        self.encoder = Stack([_block(config) for _ in range(config.encoder_layers)], _last_norm(config))
        target = self.source.embedding if config.tie == "all" else Embedding(size, d_model, scale)
        self.target = InputEmbedding(target, added_positions(config), dropout, config.begin_row)
        self.decoder = DecoderStack([_decoder_block(config) for _ in range(config.decoder_layers)], _last_norm(config))
        table = Parameter((size, d_model), normal(d_model**-0.5)) if config.tie == "none" else target.table
        fixed = config.fixed_output_bias
        self.output = Output(table, Parameter((size,), zeros, trained=not fixed) if config.output_bias else None)

    def _fold(self) -> None:
        layers = [block.cross_attention.layer for block in self.decoder.blocks]
        fold_norms(self.source, self.encoder, [layer.key_value for layer in layers])
        fold_norms(self.target, self.decoder)

    def encode(self, ids: Array, rows: Rows, tape: Tape) -> Array:
        """Read the sources.  Shapes: ids (M,) -> memory (M, D)."""
        return self.encoder.forward(self.source.forward(ids, rows, tape), rows, tape)

    def decode(self, ids: Array, memory: Array, rows: Rows, tape: Tape) -> Array:
        """Read the targets so far, attending to the memory.  Shapes: ids (N,), memory (M, D) -> (N, D)."""
        return self.decoder.forward(self.target.forward(ids, rows, tape), memory, rows, tape)

    def forward(self, batch: Seq2SeqBatch, tape: Tape) -> Array:
        """Read sources and targets with teacher forcing, up to the output, (N, D)."""
        memory = self.encode(batch.sources, batch.source_rows, tape)
        return self.decode(batch.inputs, memory, batch.rows, tape)

    def loss(self, batch: Seq2SeqBatch, tape: Tape, smoothing: float = 0.0, prior: Array | None = None) -> LossSums:
        """Sum the losses of all target tokens; `backward` follows if the tape keeps."""
        return self.output.loss(self.forward(batch, tape), batch.labels, tape, smoothing, prior)

    def backward(self, tape: Tape, dloss: float = 1.0) -> None:
        """Add dloss times the gradient of the last `loss` on this tape to the tape's gradients."""
        dx, dmemory = self.decoder.backward(self.output.backward(dloss, tape), tape)
        self.target.backward(dx, tape)
        self.source.backward(self.encoder.backward(dmemory, tape), tape)


def _block(config: Seq2SeqConfig) -> Block:
    return Block(_attention(config, causal=False), _feed_forward(config))


def _decoder_block(config: Seq2SeqConfig) -> DecoderBlock:
    cross_attention = CrossAttention(config.d_model, config.num_heads, config.attention_dropout, config.bias)
    return DecoderBlock(_attention(config, causal=True), _residual(config, cross_attention), _feed_forward(config))


def _attention(config: Seq2SeqConfig, causal: bool) -> Residual:
    attention = SelfAttention(config.d_model, config.num_heads, config.attention_dropout, config.bias, causal)
    return _residual(config, attention)


def _feed_forward(config: Seq2SeqConfig) -> Residual:
    sizes = config.d_model, config.d_ff
    return _residual(config, FeedForward(*sizes, config.activation, config.activation_dropout, config.bias))


def _residual(config: Seq2SeqConfig, layer: Module) -> Residual:
    return Residual(_norm(config), layer, config.residual_dropout, config.norm_position == "pre")


def _norm(config: Seq2SeqConfig) -> LayerNorm:
    return LayerNorm(config.d_model, config.bias)


def _last_norm(config: Seq2SeqConfig) -> LayerNorm | None:
    """Post-norm blocks end in a norm of their own."""
    return _norm(config) if config.norm_position == "pre" else None

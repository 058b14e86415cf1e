"""The encoder-decoder transformer (Vaswani et al. 2017) for translation and other mappings of sequences."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from toolkit.functional.activation import ACTIVATIONS
from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import LossSums, output_loss, output_loss_backward
from toolkit.models.inputs import Input, Positions, absolute_positions
from toolkit.models.settings import check_settings
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.blocks import Block, DecoderBlock, Residual
from toolkit.nn.layers import Embedding, FeedForward, LayerNorm
from toolkit.nn.module import Model, Parameter, zeros
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS


@dataclass(frozen=True)
class Seq2SeqConfig:
    """The shape of a `Seq2Seq`."""

    vocab_size: int = 4000  # tokens that source and target share; training takes fewer where a corpus offers fewer
    width: int = 256  # D, of the residual stream
    heads: int = 8  # attention heads; they divide the width
    feed_forward: int = 1024  # F, inside the feed-forward networks
    encoder_layers: int = 3
    decoder_layers: int = 3
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"
    norm: Literal["pre", "post"] = "pre"  # layer norm before each sub-layer, or after its residual sum
    bias: bool = True  # biases in linear maps and norms
    positions: Literal["sinusoidal", "sinusoidal_halves", "learned"] = "sinusoidal"
    max_length: int = 256  # tokens with end mark: the longest to train on, and all that learned positions know
    tie: Literal["none", "decoder", "all"] = "all"  # which embeddings are one table: target and output, or source too
    scale_embedding: bool = True  # embeddings are multiplied by √D where they are read
    output_bias: bool = False  # a bias of every token's score
    fixed_output_bias: bool = False  # training leaves that bias as it is; import sets it
    begin_row: int = BOS  # the row of the table that <s> reads; import sets it where another token begins outputs
    ignore_case: bool = False  # read sources in lower case: a small corpus then teaches every word in one form
    embedding_dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.1
    residual_dropout: float = 0.1

    def __post_init__(self) -> None:
        """Raises ConfigError where settings do not fit."""
        check_settings(self, _COUNTS, _CHOICES)

    def has_bias(self, part: str) -> bool:
        """Whether the maps of "attention" or "feed_forward", or the layer "norms", have biases: all, or none."""
        return self.bias


_COUNTS = ("vocab_size", "width", "heads", "feed_forward", "encoder_layers", "decoder_layers", "max_length")
_CHOICES = {
    "activation": tuple(ACTIVATIONS),
    "norm": ("pre", "post"),
    "positions": ("sinusoidal", "sinusoidal_halves", "learned"),
    "tie": ("none", "decoder", "all"),
}


class Seq2SeqBatch(NamedTuple):
    """Sentence pairs as rows, teacher forcing included: inputs = [begin] + target, labels = target + [end].

    Source sentences may stand in another order than their targets; `rows` knows which memory belongs to which.
    """

    sources: Array  # (M,) ids
    source_rows: Rows
    inputs: Array  # (N,) ids
    labels: Array  # (N,) ids
    rows: Rows


class Seq2Seq(Model):
    """An encoder that reads the source, and a decoder that writes the target while attending to what was read."""

    kind = "seq2seq"

    def __init__(self, config: Seq2SeqConfig):
        self.config = config
        width, size = config.width, config.vocab_size
        scale = math.sqrt(width) if config.scale_embedding else 1.0
        self.source = Input(Embedding(size, width, scale), *_positions(config))
        self.encoder = [Block(*_sub_layers(config, causal=False)) for _ in range(config.encoder_layers)]
        target = self.source.embedding if config.tie == "all" else Embedding(size, width, scale)
        self.target = Input(target, *_positions(config), config.begin_row)
        self.decoder = []
        for _ in range(config.decoder_layers):
            attention, feed_forward, residuals = _sub_layers(config, causal=True)
            cross = CrossAttention(width, config.heads, config.attention_dropout, config.bias)
            residuals.append(_residual(config))
            self.decoder.append(DecoderBlock(attention, cross, feed_forward, residuals))
        if config.norm == "pre":
            self.encoder_norm, self.decoder_norm = LayerNorm(width, config.bias), LayerNorm(width, config.bias)
        self.output = Embedding(size, width) if config.tie == "none" else target
        fixed = config.fixed_output_bias
        self.output_bias = Parameter((size,), zeros, trained=not fixed) if config.output_bias else None

    def encode(self, ids: Array, rows: Rows, tape: Tape) -> Array:
        """Read the sources.  Shapes: ids (M,) -> memory (M, D)."""
        x = self.source.forward(ids, rows, tape)
        for block in self.encoder:
            x = block.forward(x, rows, tape)
        return self.encoder_norm.forward(x, tape) if self.config.norm == "pre" else x

    def decode(self, ids: Array, memory: Array, rows: Rows, tape: Tape) -> Array:
        """What the decoder makes of the target so far.  Shapes: ids (N,), memory (M, D) -> (N, D)."""
        x = self.target.forward(ids, rows, tape)
        for block in self.decoder:
            x = block.forward(x, memory, rows, tape)
        return self.decoder_norm.forward(x, tape) if self.config.norm == "pre" else x

    def logits(self, x: Array, tape: Tape) -> Array:
        """Scores of all tokens as the next one.  Shapes: (N, D) -> (N, V)."""
        table = self.output.table.data
        scores = np.matmul(x, table.T, out=tape.empty((len(x), len(table)), x.dtype))
        if self.output_bias:
            scores += self.output_bias.data
        tape.record(self, "logits", scores)
        return scores

    def loss(self, batch: Seq2SeqBatch, tape: Tape, smoothing: float = 0.0, prior: Array | None = None) -> LossSums:
        """The sums of the losses of all target tokens; `backward` follows if the tape keeps."""
        memory = self.encode(batch.sources, batch.source_rows, tape)
        x = self.decode(batch.inputs, memory, batch.rows, tape)
        table, bias = self.output.table.data, self.output_bias and self.output_bias.data
        sums, saved = output_loss(x, table, bias, batch.labels, smoothing, prior, tape.keeps, tape.empty)
        tape.push(self, saved)
        return sums

    def backward(self, tape: Tape, dloss: float = 1.0) -> None:
        """Add dloss times the gradient of the last `loss` on this tape to the tape's gradients."""
        dx, dtable, dbias = output_loss_backward(dloss, tape.pop(self))
        tape.accumulate(self.output.table, dtable)
        if self.output_bias:
            tape.accumulate(self.output_bias, dbias)
        pre_norm = self.config.norm == "pre"
        dx = self.decoder_norm.backward(dx, tape) if pre_norm else dx
        dmemory = None
        for block in reversed(self.decoder):
            dx, contribution = block.backward(dx, tape)
            dmemory = contribution if dmemory is None else tape.add(dmemory, contribution)
        self.target.backward(dx, tape)
        dx = self.encoder_norm.backward(dmemory, tape) if pre_norm else dmemory
        for block in reversed(self.encoder):
            dx = block.backward(dx, tape)
        self.source.backward(dx, tape)


def _positions(config: Seq2SeqConfig) -> tuple[Positions, float]:
    """What is added to an embedding, and the dropout of the sum."""
    return absolute_positions(config.positions, config.max_length, config.width), config.embedding_dropout


def _sub_layers(config: Seq2SeqConfig, causal: bool) -> tuple[SelfAttention, FeedForward, list[Residual]]:
    attention = SelfAttention(config.width, config.heads, config.attention_dropout, config.bias, causal)
    feed_forward = FeedForward(
        config.width, config.feed_forward, config.activation, config.activation_dropout, config.bias
    )
    return attention, feed_forward, [_residual(config) for _ in range(2)]


def _residual(config: Seq2SeqConfig) -> Residual:
    return Residual(LayerNorm(config.width, config.bias), config.residual_dropout, config.norm == "pre")

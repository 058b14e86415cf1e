"""The decoder-only transformer for language models: GPT-2's arrangement (Radford et al. 2019), with Llama's options.

Pre-norm blocks of causal self-attention and a feed-forward network, a last norm, and scores of all tokens as the next.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from toolkit.display import short_repr
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import LossSums
from toolkit.functional.positions import (
    interpolated_frequencies,
    llama3_frequencies,
    rotary_frequencies,
    yarn_frequencies,
)
from toolkit.models.base import LONGEST_CONTEXT, InputEmbedding, ModelConfig, added_positions
from toolkit.models.folding import fold_norms
from toolkit.nn.attention import SelfAttention
from toolkit.nn.blocks import Block, Residual, Stack
from toolkit.nn.layers import Embedding, FeedForward, LayerNorm, Norm, Output, RMSNorm, RotaryPositions
from toolkit.nn.module import Model, Module, Parameter, normal, zeros
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS

_FACTORS = tuple(f"rotary_{name}" for name in ("factor", "low_freq_factor", "high_freq_factor", "attention_factor"))
_SMALLEST, _LARGEST = 1e-6, 1e6  # of those: no number above is of use, and none within overflows
_STD = 0.02  # of all initial weights, as in GPT-2

# The output bias of an id that must never be written: exp of it is 0, so the probabilities of all others are those of
# a model that does not have the id. float16 holds it exactly.
ABSENT = -1e4


@dataclass(frozen=True)
class GPTConfig(ModelConfig):
    """The shape of a `GPT`."""

    vocab_size: int = 2000  # tokens; training takes as many as its tokenizer has
    d_model: int = 128  # D, of the residual stream
    layers: int = 4
    num_heads: int = 4  # attention heads; they divide d_model
    num_key_value_heads: int = 0  # heads of keys and values, each shared by several of queries; 0: as many as heads
    head_dim: int = 0  # K, of each head; 0: d_model / num_heads
    qk_norm: bool = False  # norms of the heads of queries and keys, before they are turned
    d_ff: int = 512  # F, inside the feed-forward networks
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"] = "gelu"
    norm: Literal["layer", "rms"] = "layer"
    norm_eps: float = 1e-5  # added to a variance or mean square before its root is taken
    bias: bool = False  # biases in linear maps and layer norms
    # Of these, which have biases, if bias is; attention_input: queries, keys and values alone.
    bias_in: Literal["all", "attention", "attention_input", "feed_forward", "norms"] = "all"
    positions: Literal["learned", "sinusoidal", "sinusoidal_halves", "rotary"] = "rotary"
    rotary_base: float = 10000.0  # rotary positions: the longest wave has 2π times this many tokens
    rotary_scaling: Literal["none", "linear", "llama3", "yarn"] = "none"  # stretches the waves for longer texts
    rotary_factor: float = 1.0  # how many times they are stretched
    rotary_original_length: int = 0  # llama3, yarn: tokens of a text before; 0: max_length
    rotary_low_freq_factor: float = 1.0  # waves that turn fewer times in that length are stretched by all of it,
    rotary_high_freq_factor: float = 4.0  # those that turn more often than this not at all
    rotary_attention_factor: float = 1.0  # queries and keys are multiplied by it
    max_length: int = 256  # T, the context: the most tokens that are read at once
    tie: bool = True  # the output table is the embedding; not tied, it is one of its own
    output_bias: bool = False  # a bias of every token's score
    fixed_output_bias: bool = False  # training leaves that bias as it is; import sets it
    begin_row: int = BOS  # the row of the table that <s> reads; import sets it where another token begins texts
    begin: bool = True  # whether texts begin with <s>; training sets it, by --documents
    template: Literal["none", "control", "plain"] = "none"  # how conversations are written; fine-tuning sets it
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    residual_dropout: float = 0.0

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Raises ConfigError where settings do not fit."""
        super().__post_init__()
        if self.num_key_value_heads < 0 or self.num_heads % (self.num_key_value_heads or self.num_heads):
            raise ConfigError(
                f"{self.num_heads} heads cannot share {self.num_key_value_heads} num_key_value_heads evenly"
            )
        if self.head_dim < 0:
            raise ConfigError(f"head_dim is {self.head_dim}: it must be at least 1, or 0 for d_model / num_heads")
        if self.positions == "rotary" and self.head_width % 2:
            width = f"head_dim {self.head_dim}" if self.head_dim else f"{self.d_model} / {self.num_heads}"
            raise ConfigError(f"rotary positions need heads of even width: {width} is odd")
        for name in ("rotary_base", "norm_eps"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must be a number above 0")
        for name in _FACTORS:
            if not _SMALLEST <= getattr(self, name) <= _LARGEST:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must be from {_SMALLEST:g} to {_LARGEST:,.0f}")
        if not 0 <= self.rotary_original_length <= LONGEST_CONTEXT:
            most = f"it must be at most {LONGEST_CONTEXT:,} tokens, or 0 for max_length"
            raise ConfigError(f"rotary_original_length is {self.rotary_original_length}: {most}")
        if self.rotary_low_freq_factor >= self.rotary_high_freq_factor:
            low, high = self.rotary_low_freq_factor, self.rotary_high_freq_factor
            raise ConfigError(f"rotary_low_freq_factor is {low}: it must be below rotary_high_freq_factor, {high}")
        if self.rotary_scaling == "yarn" and self.rotary_base <= 1:
            raise ConfigError(f"rotary_base is {self.rotary_base}: yarn needs waves that grow, a number above 1")

    def has_bias(self, part: str) -> bool:
        """True where the maps of "feed_forward", the two of "attention" or the first of them, "attention_input", or the
        layer "norms", have biases.
        """
        wider = ("attention",) if part == "attention_input" else ()
        return self.bias and self.bias_in in ("all", part, *wider)


class GPTBatch(NamedTuple):
    """Texts as rows, teacher forcing included: labels[n] is what follows inputs[n]."""

    inputs: Array  # (N,) ids
    labels: Array  # (N,) ids
    rows: Rows
    scored: Array | None = None  # (M,) the rows whose labels count, ascending; None: all. The others are only read.

    __repr__ = short_repr


def text_batch(texts: Sequence[Array]) -> GPTBatch:
    """Put texts of two tokens or more into rows with teacher forcing: every token but the first is a label."""
    rows = Rows(np.array([len(text) - 1 for text in texts]))
    inputs, labels = (np.concatenate([text[part] for text in texts]) for part in (slice(None, -1), slice(1, None)))
    return GPTBatch(inputs.astype(np.int64), labels.astype(np.int64), rows)


class GPT(Model):
    """A stack of causal blocks, and the scores of all tokens as the next one."""

    kind = "gpt"

    def __init__(self, config: GPTConfig):
        self.config = config
        self.trunk = Trunk(config)
        size, fixed = config.vocab_size, config.fixed_output_bias
        table = self.trunk.input.embedding.table if config.tie else Parameter((size, config.d_model), normal(_STD))
        self.output = Output(table, Parameter((size,), zeros, trained=not fixed) if config.output_bias else None)

    def permit(self, ids: Sequence[int]) -> None:
        """Let those of the tokens be written that import has forbidden: only their rows decide from now on.

        A bias that was learned stays.
        """
        if self.output.bias:
            bias = self.output.bias.data
            bias[[each for each in ids if bias[each] <= ABSENT / 2]] = 0

    def _fold(self) -> None:
        fold_norms(self.trunk.input, self.trunk.decoder)

    def read(self, ids: Array, rows: Rows, tape: Tape) -> Array:
        """Read texts, up to the output.  Shapes: ids (N,) -> (N, D)."""
        return self.trunk.forward(ids, rows, tape)

    def forward(self, batch: GPTBatch, tape: Tape) -> Array:
        """Read texts with teacher forcing, up to the output: the rows whose labels count, (M, D)."""
        return self.trunk.forward(batch.inputs, batch.rows, tape, batch.scored)

    def loss(self, batch: GPTBatch, tape: Tape, smoothing: float = 0.0, prior: Array | None = None) -> LossSums:
        """Sum the losses of all tokens that count; `backward` follows if the tape keeps."""
        labels = batch.labels if batch.scored is None else batch.labels[batch.scored]
        return self.output.loss(self.forward(batch, tape), labels, tape, smoothing, prior)

    def backward(self, tape: Tape, dy: float | Array = 1.0) -> None:
        """Add the gradient of the last pass on this tape to the tape's gradients.

        dy: the gradient of what `loss` or `Output.log_probs` returned; see `Output.backward`.
        """
        self.trunk.backward(self.output.backward(dy, tape), tape)


class Trunk(Module):
    """Everything below the output.  Shapes: ids (N,) -> (N, D)."""

    def __init__(self, config: GPTConfig):
        embedding = Embedding(config.vocab_size, config.d_model, std=_STD)
        self.input = InputEmbedding(embedding, added_positions(config), config.embedding_dropout, config.begin_row)
        rotary = _rotary(config) if config.positions == "rotary" else None
        self.decoder = Stack([_block(config, rotary) for _ in range(config.layers)], _norm(config))

    def forward(self, ids: Array, rows: Rows, tape: Tape, at: Array | None = None) -> Array:
        """Read texts.  at: (M,) the rows whose results are wanted, none twice: the result is (M, D); None: all."""
        x = self.decoder.forward(self.input.forward(ids, rows, tape), rows, tape)
        tape.push(self, (at, len(x)))
        return x if at is None else np.take(x, at, axis=0, out=tape.empty((len(at), x.shape[1]), x.dtype))

    def backward(self, dx: Array, tape: Tape) -> None:
        at, count = tape.pop(self)
        if at is not None:  # rows that were not used have no gradient
            dx, of_used = tape.empty((count, dx.shape[1]), dx.dtype), dx
            dx[...] = 0
            dx[at] = of_used
        self.input.backward(self.decoder.backward(dx, tape), tape)


def _rotary(config: GPTConfig) -> RotaryPositions:
    frequencies, factor = rotary_frequencies(config.head_width, config.rotary_base), config.rotary_factor
    length = config.rotary_original_length or config.max_length
    bounds = config.rotary_low_freq_factor, config.rotary_high_freq_factor
    if config.rotary_scaling == "linear":
        frequencies = interpolated_frequencies(frequencies, factor)
    elif config.rotary_scaling == "llama3":
        frequencies = llama3_frequencies(frequencies, factor, length, *bounds)
    elif config.rotary_scaling == "yarn":
        frequencies = yarn_frequencies(frequencies, factor, length, *bounds, config.rotary_base)
    return RotaryPositions(frequencies, config.rotary_attention_factor)


def _block(config: GPTConfig, rotary: RotaryPositions | None) -> Block:
    """Projections into the residual stream begin smaller: it is the sum of 2 · layers of them (Radford et al. 2019)."""
    initial, output_initial = normal(_STD), normal(_STD / math.sqrt(2 * config.layers))
    attention = SelfAttention(
        config.d_model,
        config.num_heads,
        config.attention_dropout,
        config.has_bias("attention_input"),
        causal=True,
        num_key_value_heads=config.num_key_value_heads,
        rotary=rotary,
        initial=initial,
        output_initial=output_initial,
        output_bias=config.has_bias("attention"),
        head_dim=config.head_dim,
        qk_norm_eps=config.norm_eps if config.qk_norm else None,
    )
    feed_forward = FeedForward(
        config.d_model,
        config.d_ff,
        config.activation,
        config.activation_dropout,
        config.has_bias("feed_forward"),
        initial,
        output_initial,
    )
    return Block(*(Residual(_norm(config), layer, config.residual_dropout) for layer in (attention, feed_forward)))


def _norm(config: GPTConfig) -> Norm:
    if config.norm == "rms":
        return RMSNorm(config.d_model, config.norm_eps)
    return LayerNorm(config.d_model, config.has_bias("norms"), config.norm_eps)

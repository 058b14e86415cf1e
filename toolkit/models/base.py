"""The base of all models: a config that checks itself, and the embedding of tokens that a model begins with."""

import dataclasses
from typing import Any, get_args

import numpy as np

from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.nn.layers import Dropout, Embedding, LearnedPositions, SinusoidalPositions
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, PAD

# The longest context of any model, in tokens: what a number costs nothing to write must not cost memory to obey.
LONGEST_CONTEXT = 1 << 20

_COUNTS = ("vocab_size", "d_model", "num_heads", "d_ff", "layers", "encoder_layers", "decoder_layers", "max_length")


class ModelConfig:
    """Base of the dataclasses that describe models; settings that no model can have are refused.

    A `Literal` lists the words that a setting may be. Names that end in _dropout are probabilities below 1.
    """

    def __post_init__(self) -> None:
        """Raises ConfigError where settings do not fit."""
        values = vars(self)
        for name in _COUNTS:
            if values.get(name, 1) < 1:
                raise ConfigError(f"{name} is {values[name]}: it must be at least 1")
        if values.get("max_length", 1) > LONGEST_CONTEXT:
            raise ConfigError(f"max_length is {values['max_length']}: it must be at most {LONGEST_CONTEXT:,} tokens")
        if values["d_model"] % values["num_heads"] and not values.get("head_dim"):
            raise ConfigError(f"d_model {values['d_model']} cannot be divided into {values['num_heads']} heads")
        row = values.get("begin_row", BOS)
        if row != BOS and not 0 <= row < values["vocab_size"]:
            raise ConfigError(f"begin_row is {row}: it must be one of the {values['vocab_size']} tokens")
        for name, value in values.items():
            if name.endswith("_dropout") and not 0 <= value < 1:
                raise ConfigError(f"{name} is {value}: it must be at least 0 and below 1")
        for field in dataclasses.fields(self):
            words, value = get_args(field.type), values[field.name]
            if words and value not in words:
                raise ConfigError(f"{field.name} is {value!r}: it must be one of {', '.join(words)}")

    @property
    def head_width(self) -> int:
        """K, of each head."""
        return getattr(self, "head_dim", 0) or self.d_model // self.num_heads


Positions = SinusoidalPositions | LearnedPositions


class InputEmbedding(Module):
    """Token embedding, plus position, then dropout.  Shapes: (N,) -> (N, D).

    positions: None where attention knows the positions itself (rotary ones).
    begin_row: the row that <s> reads. Where it is the padding's, reading does not train it, as elsewhere.
    """

    def __init__(self, embedding: Embedding, positions: Positions | None, dropout: float, begin_row: int = BOS):
        self.embedding, self.positions, self.begin_row = embedding, positions, begin_row
        self.dropout = Dropout(dropout)

    def rows_of(self, ids: Array) -> Array:
        """The row of the table that each id reads.  Shapes: (N,) -> (N,)."""
        return ids if self.begin_row == BOS else np.where(ids == BOS, self.begin_row, ids)

    def forward(self, ids: Array, rows: Rows, tape: Tape) -> Array:
        ids = self.rows_of(ids)
        x = self.embedding.forward(ids, tape)
        tape.push(self, ids)
        if self.positions:
            x = self.positions.forward(x, rows, tape)
        return self.dropout.forward(x, tape)

    def backward(self, dx: Array, tape: Tape) -> None:
        dx = self.dropout.backward(dx, tape)
        if self.positions:
            dx = self.positions.backward(dx, tape)
        ids = tape.pop(self)
        if self.begin_row == PAD:
            dx[ids == PAD] = 0
        self.embedding.backward(dx, tape)


# How sinusoidal positions are laid out, by their name in a config (see `toolkit.functional.positions`).
LAYOUTS = {"sinusoidal": "interleaved", "sinusoidal_halves": "halves", "sinusoidal_fairseq": "fairseq"}


def added_positions(config: Any) -> Positions | None:
    """Make the positions that a config adds to embeddings; None where attention knows them itself (rotary ones)."""
    if config.positions == "rotary":
        return None
    if config.positions == "learned":
        return LearnedPositions(config.max_length, config.d_model)
    return SinusoidalPositions(config.d_model, LAYOUTS[config.positions])

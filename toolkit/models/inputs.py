"""The input of a model: embeddings of tokens, with their positions."""

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.nn.layers import Dropout, Embedding, LearnedPositions, SinusoidalPositions
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, PAD

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


def absolute_positions(name: str, length: int, d_model: int) -> Positions:
    """The module of that name: "learned" (for `length` positions), "sinusoidal" or "sinusoidal_halves"."""
    if name == "learned":
        return LearnedPositions(length, d_model)
    return SinusoidalPositions(d_model, "halves" if name == "sinusoidal_halves" else "interleaved")

"""What a model reads: embeddings of tokens, with their positions."""

from toolkit.functional.arrays import Array
from toolkit.nn.layers import Dropout, Embedding, LearnedPositions, SinusoidalPositions
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

Positions = SinusoidalPositions | LearnedPositions


class Input(Module):
    """Token embedding, plus position, then dropout.  Shapes: (N,) -> (N, D).

    positions: None where attention knows the positions itself (rotary ones).
    """

    def __init__(self, embedding: Embedding, positions: Positions | None, dropout: float):
        self.embedding, self.positions = embedding, positions
        self.dropout = Dropout(dropout)

    def forward(self, ids: Array, rows: Rows, tape: Tape) -> Array:
        x = self.embedding.forward(ids, tape)
        if self.positions:
            x = self.positions.forward(x, rows, tape)
        return self.dropout.forward(x, tape)

    def backward(self, dx: Array, tape: Tape) -> None:
        dx = self.dropout.backward(dx, tape)
        if self.positions:
            dx = self.positions.backward(dx, tape)
        self.embedding.backward(dx, tape)


def absolute_positions(name: str, length: int, width: int) -> Positions:
    """The module of that name: "learned" (for `length` positions), "sinusoidal" or "sinusoidal_halves"."""
    if name == "learned":
        return LearnedPositions(length, width)
    return SinusoidalPositions(width, "halves" if name == "sinusoidal_halves" else "interleaved")

"""Layers that treat every row alike: linear maps, embeddings, positions, norms, dropout, feed-forward networks."""

from toolkit.errors import ConfigError
from toolkit.functional.activation import activated_linear, activated_linear_backward
from toolkit.functional.arrays import Array
from toolkit.functional.dropout import dropout, dropout_backward
from toolkit.functional.embedding import embedding, embedding_backward
from toolkit.functional.layer_norm import layer_norm, layer_norm_backward
from toolkit.functional.linear import linear, linear_backward
from toolkit.functional.positions import sinusoidal_positions
from toolkit.nn.module import Initializer, Module, Parameter, normal, ones, xavier_uniform, zeros
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape


class Linear(Module):
    """y = x W + b.  Shapes: (N, inputs) -> (N, outputs)."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True, initial: Initializer | None = None):
        self.weight = Parameter((inputs, outputs), initial or xavier_uniform(inputs, outputs))
        self.bias = Parameter((outputs,), zeros) if bias else None

    def forward(self, x: Array, tape: Tape) -> Array:
        y, saved = linear(x, self.weight.data, self.bias and self.bias.data, tape.empty)
        tape.push(self, saved)
        return y

    def backward(self, dy: Array, tape: Tape) -> Array:
        return self._accumulate(*linear_backward(dy, tape.pop(self), tape.empty), tape)

    def _accumulate(self, dx: Array, dweight: Array, dbias: Array | None, tape: Tape) -> Array:
        tape.accumulate(self.weight, dweight)
        if self.bias:
            tape.accumulate(self.bias, dbias)
        return dx


class ActivatedLinear(Linear):
    """y = dropout(f(x W + b)).  Shapes: (N, inputs) -> (N, outputs)."""

    def __init__(self, inputs: int, outputs: int, activation: str, dropout: float = 0.0, bias: bool = True):
        super().__init__(inputs, outputs, bias)
        self.activation, self.dropout = activation, dropout

    def forward(self, x: Array, tape: Tape) -> Array:
        mask, scale = tape.keep_mask((len(x), self.weight.shape[1]), self.dropout)
        bias = self.bias and self.bias.data
        y, saved = activated_linear(x, self.weight.data, bias, self.activation, mask, scale, tape.keeps, tape.empty)
        tape.push(self, saved)
        return y

    def backward(self, dy: Array, tape: Tape) -> Array:
        return self._accumulate(*activated_linear_backward(dy, tape.pop(self), tape.empty), tape)


class Embedding(Module):
    """A table of rows, looked up by id and scaled.  Shapes: (N,) -> (N, D)."""

    def __init__(self, size: int, width: int, scale: float = 1.0, std: float | None = None):
        self.table = Parameter((size, width), normal(width**-0.5 if std is None else std))
        self.scale = scale

    def forward(self, ids: Array, tape: Tape) -> Array:
        y, saved = embedding(ids, self.table.data, self.scale, tape.empty)
        tape.push(self, saved)
        return y

    def backward(self, dy: Array, tape: Tape) -> None:
        embedding_backward(dy, tape.pop(self), tape.gradients[self.table])


class SinusoidalPositions(Module):
    """x + PE(position): fixed waves, for sequences of any length.  Shapes: (N, D) -> (N, D)."""

    def __init__(self, width: int, layout: str = "interleaved"):
        self.width, self.layout = width, layout
        self._table = sinusoidal_positions(0, width, layout)

    def forward(self, x: Array, rows: Rows, tape: Tape) -> Array:
        needed = rows.longest
        if needed > len(self._table) or self._table.dtype != x.dtype:
            self._table = sinusoidal_positions(max(needed, 256), self.width, self.layout, x.dtype.type)
        return tape.add(x, self._table[rows.positions])

    def backward(self, dy: Array, tape: Tape) -> Array:
        return dy


class LearnedPositions(Module):
    """x + table[position].  Shapes: (N, D) -> (N, D). Raises ConfigError beyond the longest position learned."""

    def __init__(self, length: int, width: int, std: float = 0.02):
        self.embedding = Embedding(length, width, std=std)

    def forward(self, x: Array, rows: Rows, tape: Tape) -> Array:
        limit = self.embedding.table.shape[0]
        if rows.longest > limit:
            raise ConfigError(f"a sequence of {rows.longest} tokens is longer than the model's {limit} positions")
        return tape.add(x, self.embedding.forward(rows.positions, tape))

    def backward(self, dy: Array, tape: Tape) -> Array:
        self.embedding.backward(dy, tape)
        return dy


class LayerNorm(Module):
    """Rows of mean 0 and variance 1, scaled and shifted.  Shapes: (N, D) -> (N, D)."""

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5):
        self.gain = Parameter((width,), ones)
        self.bias = Parameter((width,), zeros) if bias else None
        self.eps = eps

    def forward(self, x: Array, tape: Tape) -> Array:
        y, saved = layer_norm(x, self.gain.data, self.bias and self.bias.data, self.eps, tape.empty)
        tape.push(self, saved)
        return y

    def backward(self, dy: Array, tape: Tape) -> Array:
        dx, dgain, dbias = layer_norm_backward(dy, tape.pop(self), tape.empty)
        tape.accumulate(self.gain, dgain)
        if self.bias:
            tape.accumulate(self.bias, dbias)
        return dx


class Dropout(Module):
    """Each entry is dropped with probability `rate` while training.  Shapes: (N, D) -> (N, D)."""

    def __init__(self, rate: float):
        self.rate = rate

    def forward(self, x: Array, tape: Tape) -> Array:
        mask, scale = tape.keep_mask(x.shape, self.rate)
        if mask is None:
            tape.push(self, None)
            return x
        y, saved = dropout(x, mask, scale, tape.empty)
        tape.push(self, saved)
        return y

    def backward(self, dy: Array, tape: Tape) -> Array:
        saved = tape.pop(self)
        return dy if saved is None else dropout_backward(dy, saved, tape.empty)[0]


class FeedForward(Module):
    """Position-wise feed-forward network (Vaswani et al. 2017, eq. 2): y = dropout(f(x W1 + b1)) W2 + b2.

    Shapes: (N, D) -> (N, D), F wide inside.
    """

    def __init__(self, width: int, hidden: int, activation: str, dropout: float = 0.0, bias: bool = True):
        self.expand = ActivatedLinear(width, hidden, activation, dropout, bias)
        self.contract = Linear(hidden, width, bias)

    def forward(self, x: Array, tape: Tape) -> Array:
        return self.contract.forward(self.expand.forward(x, tape), tape)

    def backward(self, dy: Array, tape: Tape) -> Array:
        return self.expand.backward(self.contract.backward(dy, tape), tape)

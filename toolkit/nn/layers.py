"""Layers that treat every row alike: linear maps, embeddings, positions, norms, dropout, feed-forward networks, and
the output of a model that writes."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from toolkit.errors import ConfigError
from toolkit.functional.activation import (
    activated_linear,
    activated_linear_backward,
    gated_linear,
    gated_linear_backward,
)
from toolkit.functional.arrays import Array
from toolkit.functional.dropout import dropout, dropout_backward
from toolkit.functional.embedding import embedding, embedding_backward
from toolkit.functional.int8 import Int8Matrix
from toolkit.functional.linear import linear, linear_backward
from toolkit.functional.norms import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from toolkit.functional.output_loss import (
    LossSums,
    output_loss,
    output_loss_backward,
    token_log_probs,
    token_log_probs_backward,
)
from toolkit.functional.positions import rotary, rotary_backward, rotary_table, sinusoidal_positions
from toolkit.nn.module import Initializer, Module, Parameter, normal, ones, xavier_uniform, zeros
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape


class Linear(Module):
    """y = x W + b.  Shapes: (N, inputs) -> (N, outputs).

    splits: where W is several maps side by side, the columns at which all but the first begin.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        initial: Initializer | None = None,
        splits: Sequence[int] = (),
    ):
        initial = initial or xavier_uniform(inputs, outputs)
        self.weight = Parameter((inputs, outputs), initial, transposed=True, splits=splits)
        self.bias = Parameter((outputs,), zeros) if bias else None

    def forward(self, x: Array, tape: Tape) -> Array:
        return tape.result(self, *linear(x, self.weight.data, self.bias and self.bias.data, tape.empty))

    def backward(self, dy: Array, tape: Tape) -> Array:
        found = linear_backward(dy, tape.pop(self), tape.empty, tape.unwritten_gradient(self.weight))
        return self._accumulate(*found, tape)

    def _quantize(self, shared: set[Parameter]) -> None:
        if not self.weight.quantized:
            self.weight.data = Int8Matrix(self.weight.data)

    def _accumulate(self, dx: Array, dweight: Array, dbias: Array | None, tape: Tape) -> Array:
        tape.accumulate(self.weight, dweight)
        tape.accumulate(self.bias, dbias)
        return dx


class ActivatedLinear(Linear):
    """y = dropout(f(x W + b)).  Shapes: (N, inputs) -> (N, outputs)."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        activation: str,
        dropout: float = 0.0,
        bias: bool = True,
        initial: Initializer | None = None,
    ):
        super().__init__(inputs, outputs, bias, initial)
        self.activation, self.dropout = activation, dropout

    def forward(self, x: Array, tape: Tape) -> Array:
        mask, scale = tape.keep_mask((len(x), self.weight.shape[1]), self.dropout)
        parameters = self.weight.data, self.bias and self.bias.data
        found = activated_linear(x, *parameters, self.activation, mask, scale, tape.keeps, tape.empty)
        return tape.result(self, *found)

    def backward(self, dy: Array, tape: Tape) -> Array:
        found = activated_linear_backward(dy, tape.pop(self), tape.empty, tape.unwritten_gradient(self.weight))
        return self._accumulate(*found, tape)


class GatedLinear(Linear):
    """y = dropout(silu(g) · u) with [g | u] = x W + b.  Shapes: (N, inputs) -> (N, outputs)."""

    def __init__(
        self, inputs: int, outputs: int, dropout: float = 0.0, bias: bool = True, initial: Initializer | None = None
    ):
        super().__init__(inputs, 2 * outputs, bias, initial or xavier_uniform(inputs, outputs), splits=(outputs,))
        self.dropout = dropout

    def forward(self, x: Array, tape: Tape) -> Array:
        mask, scale = tape.keep_mask((len(x), self.weight.shape[1] // 2), self.dropout)
        parameters = self.weight.data, self.bias and self.bias.data
        return tape.result(self, *gated_linear(x, *parameters, mask, scale, tape.keeps, tape.empty))

    def backward(self, dy: Array, tape: Tape) -> Array:
        found = gated_linear_backward(dy, tape.pop(self), tape.empty, tape.unwritten_gradient(self.weight))
        return self._accumulate(*found, tape)


class Embedding(Module):
    """A table of rows, looked up by id and scaled.  Shapes: (N,) -> (N, D)."""

    def __init__(self, size: int, d_model: int, scale: float = 1.0, std: float | None = None):
        self.table = Parameter((size, d_model), normal(d_model**-0.5 if std is None else std))
        self.scale = scale

    def forward(self, ids: Array, tape: Tape) -> Array:
        return tape.result(self, *embedding(ids, self.table.data, self.scale, tape.empty))

    def _quantize(self, shared: set[Parameter]) -> None:
        if not self.table.quantized:
            self.table.data = Int8Matrix(self.table.data.T, keeps_rows=True).T

    def backward(self, dy: Array, tape: Tape) -> None:
        embedding_backward(dy, tape.pop(self), tape.written_gradient(self.table))


class SinusoidalPositions(Module):
    """x + PE(position): fixed waves, for sequences of any length.  Shapes: (N, D) -> (N, D)."""

    def __init__(self, d_model: int, layout: str = "interleaved"):
        self.d_model, self.layout = d_model, layout
        self._table = sinusoidal_positions(0, d_model, layout)

    def forward(self, x: Array, rows: Rows, tape: Tape) -> Array:
        return _shifted(self, x, self.table(rows.longest, x.dtype)[rows.positions], tape)

    def table(self, length: int, dtype: type) -> Array:
        """Return PE of this many positions or more, (length, D)."""
        if length > len(self._table) or self._table.dtype != dtype:
            self._table = sinusoidal_positions(_room_for(length), self.d_model, self.layout, np.dtype(dtype).type)
        return self._table

    def backward(self, dy: Array, tape: Tape) -> Array:
        return dy


def _shifted(owner: Module, x: Array, positions: Array, tape: Tape) -> Array:
    """x + positions, in the memory of `positions`; both are shown to the tape's recorder."""
    tape.show(owner, "positions", positions)
    y = tape.add(x, positions)
    tape.show(owner, "output", y)
    return y


def _room_for(length: int) -> int:
    """Positions that a table is made for: a power of two, so that a text that grows by a token seldom makes it anew."""
    return max(256, 1 << (length - 1).bit_length())


class LearnedPositions(Module):
    """x + table[position].  Shapes: (N, D) -> (N, D). Raises ConfigError beyond the longest position learned."""

    def __init__(self, length: int, d_model: int, std: float = 0.02):
        self.embedding = Embedding(length, d_model, std=std)

    def forward(self, x: Array, rows: Rows, tape: Tape) -> Array:
        self.table(rows.longest, x.dtype)
        return _shifted(self, x, self.embedding.forward(rows.positions, tape), tape)

    def table(self, length: int, dtype: type) -> Array:
        """Return the table of all positions.  Raises ConfigError where it has fewer than `length`."""
        limit = self.embedding.table.shape[0]
        if length > limit:
            raise ConfigError(f"a sequence of {length} tokens is longer than the model's {limit} positions")
        return self.embedding.table.data

    def _quantize(self, shared: set[Parameter]) -> None:
        """Leave the table as it is: it is small, and read at every token."""

    def backward(self, dy: Array, tape: Tape) -> Array:
        self.embedding.backward(dy, tape)
        return dy


class RotaryPositions(Module):
    """Turns queries and keys by angles of their positions: nothing is learned, and sequences may have any length.

    frequencies: (K / 2,) of the planes of a head, see `rotary_frequencies`. scale: what is turned is multiplied by it.
    `turn` works in place and `turn_back` is its backward: the caller owns the arrays.
    """

    def __init__(self, frequencies: Array, scale: float = 1.0):
        self.frequencies, self.scale = frequencies, scale
        self.head_dim = 2 * len(frequencies)
        self._tables = rotary_table(0, frequencies, scale)

    def turn(self, x: Array, rows: Rows, tape: Tape) -> None:
        """Shapes: x (N, H, K), changed in place."""
        tape.push(self, rotary(x, *self.waves(rows, x.dtype), out=x)[1])

    def waves(self, rows: Rows, dtype: type) -> tuple[Array, Array]:
        """Look up the cosines and sines of all angles of the rows' positions, (N, K / 2) each."""
        cosines, sines = self.tables(rows.longest, dtype)
        return cosines[rows.positions], sines[rows.positions]

    def tables(self, length: int, dtype: type) -> tuple[Array, Array]:
        """Return the cosines and sines of this many positions or more, (length, K / 2) each."""
        if length > len(self._tables[0]) or self._tables[0].dtype != dtype:
            self._tables = rotary_table(_room_for(length), self.frequencies, self.scale, dtype)
        return self._tables

    def turn_back(self, dx: Array, tape: Tape) -> None:
        """Shapes: dx (N, H, K), changed in place."""
        rotary_backward(dx, tape.pop(self), out=dx)


class LayerNorm(Module):
    """Rows of mean 0 and variance 1, scaled and shifted.  Shapes: (N, D) -> (N, D)."""

    def __init__(self, d_model: int, bias: bool = True, eps: float = 1e-5):
        self.gain = Parameter((d_model,), ones)
        self.bias = Parameter((d_model,), zeros) if bias else None
        self.eps = eps

    def forward(self, x: Array, tape: Tape) -> Array:
        return tape.result(self, *layer_norm(x, self.gain.data, self.bias and self.bias.data, self.eps, tape.empty))

    def backward(self, dy: Array, tape: Tape) -> Array:
        dx, dgain, dbias = layer_norm_backward(dy, tape.pop(self), tape.empty)
        tape.accumulate(self.gain, dgain)
        tape.accumulate(self.bias, dbias)
        return dx


class RMSNorm(Module):
    """Rows of mean square 1, scaled.  Shapes: (N, D) -> (N, D)."""

    def __init__(self, d_model: int, eps: float = 1e-5):
        self.gain = Parameter((d_model,), ones)
        self.eps = eps

    def forward(self, x: Array, tape: Tape) -> Array:
        return tape.result(self, *rms_norm(x, self.gain.data, self.eps, tape.empty))

    def backward(self, dy: Array, tape: Tape) -> Array:
        dx, dgain = rms_norm_backward(dy, tape.pop(self), tape.empty)
        tape.accumulate(self.gain, dgain)
        return dx


class Centring(Module):
    """y = x - mean(x), row by row.  Shapes: (N, D) -> (N, D)."""

    def forward(self, x: Array, tape: Tape) -> Array:
        average = np.full((x.shape[1], 1), 1 / x.shape[1], x.dtype)
        return tape.result(self, np.subtract(x, x @ average, out=tape.empty(x.shape, x.dtype)), None)

    def backward(self, dy: Array, tape: Tape) -> Array:
        """The mean is taken away from the gradient too: it changed with every entry."""
        tape.pop(self)
        return dy - dy.mean(axis=1, keepdims=True)


class HeadNorm(Module):
    """Every head of mean square 1, scaled by gains that all heads share (Henry et al. 2020, with RMS norm).

    head_dim: K. `normalize` works in place and `normalize_back` is its backward: the caller owns the arrays.
    """

    def __init__(self, head_dim: int, eps: float = 1e-5):
        self.gain = Parameter((head_dim,), ones)
        self.eps = eps

    def normalize(self, x: Array, tape: Tape) -> None:
        """Shapes: x (N, H, K), changed in place."""
        y, saved = rms_norm(_one_by_one(x, tape), self.gain.data, self.eps, tape.empty)
        x[...] = y.reshape(x.shape)
        tape.show(self, "output", x)
        tape.push(self, saved)

    def normalize_back(self, dx: Array, tape: Tape) -> None:
        """Shapes: dx (N, H, K), changed in place."""
        found, dgain = rms_norm_backward(_one_by_one(dx, tape), tape.pop(self), tape.empty)
        dx[...] = found.reshape(dx.shape)
        tape.accumulate(self.gain, dgain)


def _one_by_one(x: Array, tape: Tape) -> Array:
    """Copy heads, (N, H, K), to rows of their own, (N·H, K)."""
    rows = tape.empty((x.shape[0] * x.shape[1], x.shape[2]), x.dtype)
    rows.reshape(x.shape)[...] = x
    return rows


Norm = LayerNorm | RMSNorm


class Dropout(Module):
    """Each entry is dropped with probability `rate` while training.  Shapes: (N, D) -> (N, D)."""

    def __init__(self, rate: float):
        self.rate = rate

    def forward(self, x: Array, tape: Tape) -> Array:
        mask, scale = tape.keep_mask(x.shape, self.rate)
        y, saved = (x, None) if mask is None else dropout(x, mask, scale, tape.empty)
        tape.push(self, saved)
        return y

    def backward(self, dy: Array, tape: Tape) -> Array:
        saved = tape.pop(self)
        return dy if saved is None else dropout_backward(dy, saved, tape.empty)[0]


class FeedForward(Module):
    """Position-wise feed-forward network (Vaswani et al. 2017, eq. 2): y = dropout(f(x W1 + b1)) W2 + b2.

    activation: of `ACTIVATIONS`, or "swiglu", where f(x W1 + b1) is gated (see `GatedLinear`).
    initial, output_initial: of W1 and W2, where they are not Xavier's.
    Shapes: (N, D) -> (N, D), F wide inside.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: str,
        dropout: float = 0.0,
        bias: bool = True,
        initial: Initializer | None = None,
        output_initial: Initializer | None = None,
    ):
        if activation == "swiglu":
            self.up = GatedLinear(d_model, d_ff, dropout, bias, initial)
        else:
            self.up = ActivatedLinear(d_model, d_ff, activation, dropout, bias, initial)
        self.down = Linear(d_ff, d_model, bias, output_initial)

    def forward(self, x: Array, tape: Tape) -> Array:
        return self.down.forward(self.up.forward(x, tape), tape)

    def backward(self, dy: Array, tape: Tape) -> Array:
        return self.up.backward(self.down.backward(dy, tape), tape)


class Output(Module):
    """z = x tableᵀ + b.  Shapes: x (N, D), table (V, D), bias (V,) or None -> (N, V).

    table: an embedding's, where they are tied.
    `loss` and `log_probs` never keep the logits of a whole batch; each is followed by `backward`, if the tape keeps.
    """

    def __init__(self, table: Parameter, bias: Parameter | None = None):
        self.table, self.bias = table, bias

    def _quantize(self, shared: set[Parameter]) -> None:
        if not self.table.quantized:
            self.table.data = Int8Matrix(self.table.data.T, keeps_rows=self.table in shared).T

    def logits(self, x: Array, tape: Tape) -> Array:
        """Score all tokens as the next one.  Shapes: (N, D) -> (N, V). No backward follows."""
        table, bias = self._values()
        scores = np.matmul(x, table.T, out=tape.empty((len(x), len(table)), x.dtype))
        if bias is not None:
            scores += bias
        tape.show(self, "logits", scores)
        return scores

    def loss(self, x: Array, labels: Array, tape: Tape, smoothing: float = 0.0, prior: Array | None = None) -> LossSums:
        """Sum the cross-entropy of all rows; see `output_loss`.  Shapes: (N, D), labels (N,)."""
        sums, saved = output_loss(x, *self._values(), labels, smoothing, prior, tape.keeps, tape.empty)
        tape.push(self, partial(output_loss_backward, saved=saved))
        return sums

    def log_probs(
        self, x: Array, labels: Array, tape: Tape, temperature: float = 1.0, excluded: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the log-probability of each label, and the entropy there; see `token_log_probs`.

        Shapes: (N, D), labels (N,) -> (N,), (N,).
        """
        found, saved = token_log_probs(x, *self._values(), labels, temperature, excluded, tape.empty)
        tape.push(self, partial(token_log_probs_backward, saved=saved, empty=tape.empty))
        return found

    def backward(self, dy: float | Array, tape: Tape) -> Array:
        """dy: the gradient of the sum that `loss` returned, a number, or of `log_probs`, (N,).  Returns dx (N, D)."""
        dx, dtable, dbias = tape.pop(self)(dy)
        tape.accumulate(self.table, dtable)
        tape.accumulate(self.bias, dbias)
        return dx

    def _values(self) -> tuple[Array, Array | None]:
        return self.table.data, self.bias and self.bias.data

"""The output of a model that writes: scores of all tokens as the next one, their loss and their probabilities."""

from functools import partial

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import (
    LossSums,
    output_loss,
    output_loss_backward,
    token_log_probs,
    token_log_probs_backward,
)
from toolkit.nn.module import Module, Parameter
from toolkit.nn.tape import Tape


class Output(Module):
    """z = x tableᵀ + b.  Shapes: x (N, D), table (V, D), bias (V,) or None -> (N, V).

    table: an embedding's, where they are tied. `loss` and `log_probs` never keep the logits of a whole batch; each is
    followed by `backward`, if the tape keeps.
    """

    def __init__(self, table: Parameter, bias: Parameter | None = None):
        self.table, self.bias = table, bias

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
        if self.bias:
            tape.accumulate(self.bias, dbias)
        return dx

    def _values(self) -> tuple[Array, Array | None]:
        return self.table.data, self.bias and self.bias.data

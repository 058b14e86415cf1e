"""The pair of `toolkit.nn.blocks.Residual`, whose backward joins two paths.

It is not of `toolkit.functional`, because a sub-layer stands between its two halves; here that is a linear map.
"""

from collections.abc import Callable

import numpy as np

from toolkit.explain.gradients.pair_case import Case, Check, arrays
from toolkit.functional.arrays import Array
from toolkit.nn.blocks import Residual
from toolkit.nn.layers import LayerNorm, Linear
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape


class SubLayer(Model):
    """A residual connection around a linear map, with the norm before it.  Shapes: (N, D) -> (N, D)."""

    def __init__(self, width: int):
        self.around = Residual(LayerNorm(width, eps=1e-3), dropout=0.0, pre_norm=True)
        self.linear = Linear(width, width)

    def forward(self, x: Array, tape: Tape) -> Array:
        """What a sub-layer f makes of x is added to x itself:

            y = x + f(norm(x))

        Shapes: (N, D) -> (N, D).
        """
        return self.around.leave(x, self.linear.forward(self.around.enter(x, tape), tape), tape)

    def backward(self, dy: Array, tape: Tape, enter_backward: Callable = Residual.enter_backward) -> Array:
        """Both paths lead to x, so their gradients add up:

            dx = dy + norm_backward(f_backward(dy))

        Returns dx (N, D).
        """
        dx, dbranch = self.around.leave_backward(dy, tape)
        return enter_backward(self.around, dx, self.linear.backward(dbranch, tape), tape)


def _residual(rng: np.random.Generator, dtype: type, enter_backward: Callable) -> Check:
    model = SubLayer(4)
    model.allocate(dtype)
    parameters = list(model.parameters().values())  # the gain and the bias of the norm, the weight and the bias of f
    for parameter in parameters:
        parameter.data[...] = rng.standard_normal(parameter.shape)

    def forward(x, gain, shift, weight, bias):
        tape = Tape(model.views(np.zeros_like(model.vector)))
        return model.forward(x, tape), tape

    def backward(dy, tape):
        dx = model.backward(dy, tape, enter_backward)
        return dx, *(tape.gradients[parameter] for parameter in parameters)

    arguments = [*arrays(rng, dtype, (5, 4)), *(parameter.data for parameter in parameters)]
    return Check(forward, backward, arguments, [])


RESIDUAL = Case("residual", Residual.enter_backward, _residual)

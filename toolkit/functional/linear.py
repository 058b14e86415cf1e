"""The affine map y = x W + b."""

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, empty_like, sum_rows
from toolkit.functional.few_rows import product


def linear(x: Array, weight: Array, bias: Array | None, empty: Empty = np.empty) -> tuple[Array, Saved]:
    """Every output is a weighted sum of all inputs, plus a bias:

        y = x W + b

    b is left out where it is None.
    Shapes: x (N, D), weight (D, F), bias (F,) -> y (N, F).
    """
    y = product(x, weight, empty((len(x), weight.shape[1]), x.dtype))
    if bias is not None:
        y += bias
    return y, (x, weight, bias is not None)


def linear_backward(dy: Array, saved: Saved, empty: Empty = np.empty) -> tuple[Array, Array, Array | None]:
    """Every row used the same W and b, so their gradients are sums over rows:

        dx = dy Wᵀ        dW = xᵀ dy        db = Σ_n dy_n

    Returns dx (N, D), dweight (D, F), dbias (F,) or None.
    """
    x, weight, has_bias = saved
    dx = product(dy, weight.T, empty(x.shape, x.dtype))
    dweight = np.matmul(x.T, dy, out=empty_like(weight, empty))
    return dx, dweight, sum_rows(dy) if has_bias else None

"""Activations: element-wise functions, each with its slope, and the affine map that is followed by one.

A function turns its argument into its value, in place, and where it is differentiated writes the slope beside it, while
the argument is in the cache; its backward is then one product. The slope is what `dropout` multiplies too, so the three
share one saved array.
"""

import math
from collections.abc import Callable

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, empty_like, row_blocks, sum_rows
from toolkit.functional.few_rows import product
from toolkit.functional.normal import normal_distribution

# x becomes f(x); the second array, where there is one, becomes f'(x).
Activation = Callable[[Array, Array | None], None]


def relu(x: Array, slope: Array | None = None) -> None:
    """y = max(0, x), slope 1 where x > 0 and 0 elsewhere (Vaswani et al. 2017, eq. 2)."""
    if slope is not None:
        np.greater(x, 0, out=slope)
    np.maximum(x, 0, out=x)


def gelu(x: Array, slope: Array | None = None) -> None:
    """y = x Φ(x), slope Φ(x) + x φ(x), with the normal distribution Φ and its density φ (Hendrycks and Gimpel 2016).

    φ(x) = exp(-x² / 2) / √2π.
    """
    probability = normal_distribution(x)
    if slope is not None:
        np.multiply(x, x, out=slope)
        slope *= -0.5
        np.exp(slope, out=slope)
        slope *= x
        slope *= 1 / math.sqrt(2 * math.pi)
        slope += probability
    x *= probability


def gelu_tanh(x: Array, slope: Array | None = None) -> None:
    """GELU with Φ(x) ≈ (1 + tanh u) / 2, u = √(2/π) (x + 0.044715 x³), as GPT-2 computes it.

    With p = (1 + tanh u) / 2, slope = p + 2 x p (1 - p) u', u' = √(2/π) (1 + 0.134145 x²).
    """
    root = math.sqrt(2 / math.pi)
    square = x * x
    probability = square * (root * 0.044715)
    probability += root
    probability *= x
    np.tanh(probability, out=probability)
    probability *= 0.5
    probability += 0.5
    if slope is not None:
        square *= root * 6 * 0.044715
        square += 2 * root
        square *= x
        np.subtract(1, probability, out=slope)
        slope *= probability
        slope *= square
        slope += probability
    x *= probability


def silu(x: Array, slope: Array | None = None) -> None:
    """y = x σ(x), slope σ(x) (1 + x (1 - σ(x))); also called swish (Ramachandran et al. 2017)."""
    sigmoid = x * 0.5  # the logistic function is (1 + tanh(x / 2)) / 2, which cannot overflow
    np.tanh(sigmoid, out=sigmoid)
    sigmoid *= 0.5
    sigmoid += 0.5
    x *= sigmoid
    if slope is not None:
        np.subtract(1, sigmoid, out=slope)
        slope *= x
        slope += sigmoid


ACTIVATIONS: dict[str, Activation] = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}


def activated_linear(
    x: Array,
    weight: Array,
    bias: Array | None,
    activation: str,
    mask: Array | None = None,
    scale: float = 1.0,
    want_slope: bool = True,
    empty: Empty = np.empty,
) -> tuple[Array, Saved]:
    """An affine map, and a function of each of its results:

        y = f(x W + b)        with a dropout mask, y = f(x W + b) · mask · scale

    Shapes: x (N, D), weight (D, F), bias (F,) or None, mask (N, F) or None -> y (N, F).
    """
    function = ACTIVATIONS[activation]
    y = product(x, weight, empty((len(x), weight.shape[1]), x.dtype))
    slope = empty(y.shape, y.dtype) if want_slope else None
    for rows in row_blocks(*y.shape):
        block, block_slope = y[rows], slope[rows] if want_slope else None
        if bias is not None:
            block += bias
        function(block, block_slope)
        if mask is not None:
            kept = np.multiply(mask[rows], scale, dtype=y.dtype)
            block *= kept
            if want_slope:
                block_slope *= kept
    return y, (x, weight, bias is not None, slope)


def activated_linear_backward(dy: Array, saved: Saved, empty: Empty = np.empty) -> tuple[Array, Array, Array | None]:
    """The chain rule, element by element and then as in `linear_backward`:

        dz = dy · f'(x W + b) · mask · scale        dx = dz Wᵀ        dW = xᵀ dz        db = Σ_n dz_n

    Returns dx (N, D), dweight (D, F), dbias (F,) or None.
    """
    x, weight, has_bias, slope = saved
    dz = np.multiply(dy, slope, out=slope)
    dx = product(dz, weight.T, empty(x.shape, x.dtype))
    dweight = np.matmul(x.T, dz, out=empty_like(weight, empty))
    return dx, dweight, sum_rows(dz) if has_bias else None

"""Activations: element-wise functions, each with its slope, and the affine map that is followed by one.

A forward that will be differentiated computes the slope at once, while the argument is in the cache; its backward is
then one product. The slope is what `dropout` multiplies too, so the three share one saved array.
"""

import math
from collections.abc import Callable

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, row_blocks, sum_rows
from toolkit.functional.few_rows import product
from toolkit.functional.normal import normal_distribution

# Where a function is told that nobody wants the slope, it returns None for it.
Activation = Callable[[Array, bool], tuple[Array, Array | None]]


def relu(x: Array, want_slope: bool = True) -> tuple[Array, Array | None]:
    """y = max(0, x), slope 1 where x > 0 and 0 elsewhere (Vaswani et al. 2017, eq. 2)."""
    return np.maximum(x, 0), (x > 0).astype(x.dtype) if want_slope else None


def gelu(x: Array, want_slope: bool = True) -> tuple[Array, Array | None]:
    """y = x Φ(x), slope Φ(x) + x φ(x), with the normal distribution Φ and its density φ (Hendrycks and Gimpel 2016).

    φ(x) = exp(-x² / 2) / √2π.
    """
    probability = normal_distribution(x)
    if not want_slope:
        return np.multiply(probability, x, out=probability), None
    slope = x * x
    slope *= -0.5
    np.exp(slope, out=slope)
    slope *= x
    slope *= 1 / math.sqrt(2 * math.pi)
    slope += probability
    return np.multiply(probability, x, out=probability), slope


def gelu_tanh(x: Array, want_slope: bool = True) -> tuple[Array, Array | None]:
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
    if not want_slope:
        return np.multiply(probability, x, out=probability), None
    square *= root * 6 * 0.044715
    square += 2 * root
    square *= x
    slope = 1 - probability
    slope *= probability
    slope *= square
    slope += probability
    return np.multiply(probability, x, out=probability), slope


def silu(x: Array, want_slope: bool = True) -> tuple[Array, Array | None]:
    """y = x σ(x), slope σ(x) (1 + x (1 - σ(x))); also called swish (Ramachandran et al. 2017)."""
    sigmoid = x * 0.5  # the logistic function is (1 + tanh(x / 2)) / 2, which cannot overflow
    np.tanh(sigmoid, out=sigmoid)
    sigmoid *= 0.5
    sigmoid += 0.5
    y = x * sigmoid
    if not want_slope:
        return y, None
    slope = 1 - sigmoid
    slope *= y
    slope += sigmoid
    return y, slope


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
    """y = f(x W + b), and where a dropout mask is given, y = f(x W + b) · mask · scale.

    Shapes: x (N, D), weight (D, F), bias (F,) or None, mask (N, F) or None -> y (N, F).
    """
    function = ACTIVATIONS[activation]
    y = product(x, weight, empty((len(x), weight.shape[1]), x.dtype))
    slope = empty(y.shape, y.dtype) if want_slope else None
    for rows in row_blocks(*y.shape):
        block = y[rows]
        if bias is not None:
            block += bias
        block[...], block_slope = function(block, want_slope)
        kept = None if mask is None else np.multiply(mask[rows], scale, dtype=y.dtype)
        if mask is not None:
            block *= kept
        if want_slope:
            slope[rows] = block_slope if mask is None else np.multiply(block_slope, kept, out=block_slope)
    return y, (x, weight, bias is not None, slope)


def activated_linear_backward(dy: Array, saved: Saved, empty: Empty = np.empty) -> tuple[Array, Array, Array | None]:
    """The chain rule, element by element and then as in `linear_backward`:

        dz = dy · f'(x W + b) · mask · scale        dx = dz Wᵀ        dW = xᵀ dz        db = Σ_n dz_n

    Returns dx (N, D), dweight (D, F), dbias (F,) or None.
    """
    x, weight, has_bias, slope = saved
    dz = np.multiply(dy, slope, out=slope)
    dx = np.matmul(dz, weight.T, out=empty(x.shape, x.dtype))
    dweight = np.matmul(x.T, dz, out=empty(weight.shape, x.dtype))
    return dx, dweight, sum_rows(dz) if has_bias else None

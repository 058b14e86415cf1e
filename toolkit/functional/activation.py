"""Activations: element-wise functions, each with its slope, and the affine maps that are followed by one.

A function turns its argument into its value, in place, and where it is differentiated writes the slope beside it, while
the argument is in the cache; its backward is then one product. The slope is what `dropout` multiplies too, so the three
share one saved array. NumPy lacks the normal distribution Φ(x) = (1 + erf(x / √2)) / 2 of GELU, which stands here too.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from toolkit.functional.arrays import Array, Empty, Saved, empty_like, row_blocks, sum_rows
from toolkit.functional.linear import product

# atanh(2 Φ(x) - 1) / x as a polynomial in x², fitted so that the largest error of Φ is smallest: below 7e-8, and with
# the rounding of float32 below 2e-7. A polynomial and a tanh are the fewest passes over an array that are as exact.
_POWERS = (
    1.8094587414956598e-09,
    -1.3365070400218868e-07,
    3.9731689830805615e-06,
    -5.5278307700633204e-05,
    -3.295366034620274e-05,
    0.03633391000025419,
    0.7978844931079885,
)
_FURTHEST_SQUARE = 36.0  # beyond ±6 Φ is 0 or 1 in float32

_FURTHEST = 6.0  # erf(6) differs from 1 by less than the resolution of float64


def normal_distribution(x: Array) -> Array:
    """Φ(x), element by element, in the precision of `x`.

    In float32 Φ(x) = (1 + tanh(x P(x²))) / 2 with a polynomial P; in float64, for gradient checks, a Chebyshev
    interpolant of the exact values, with an error below 1e-14.
    """
    if x.dtype == np.float64:
        return 0.5 * (1 + _erf(x * math.sqrt(0.5)))
    square = x * x
    np.minimum(square, _FURTHEST_SQUARE, out=square)
    result = square * _POWERS[0]
    result += _POWERS[1]
    for power in _POWERS[2:]:
        result *= square
        result += power
    result *= x
    np.tanh(result, out=result)
    result *= 0.5
    result += 0.5
    return result


def _erf(z: Array) -> Array:
    """erf(z) = 2/√π ∫₀ᶻ exp(-t²) dt, by 1 - g(|z|) exp(-z²) with an interpolated g."""
    magnitude = np.abs(z)
    tail = chebyshev.chebval(2 * _fold(np.minimum(magnitude, _FURTHEST)) - 1, _tail_coefficients())
    return np.copysign(1 - tail * np.exp(-(z * z)), z)


def _fold(z: Array | float) -> Array | float:
    """[0, _FURTHEST] -> [1, 0], bent so that the tail becomes nearly a polynomial."""
    nearest = 1 / (1 + _FURTHEST / 2)
    return (1 / (1 + z / 2) - nearest) / (1 - nearest)


@functools.cache
def _tail_coefficients() -> Array:
    """Chebyshev coefficients of exp(z²) erfc(z) as a function of the folded argument."""

    def tail(node: float) -> float:
        nearest = 1 / (1 + _FURTHEST / 2)
        z = 2 * (1 / (nearest + (node + 1) / 2 * (1 - nearest)) - 1)
        return math.exp(z * z) * math.erfc(z)

    return chebyshev.chebinterpolate(np.vectorize(tail), 32)


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


def gated_linear(
    x: Array,
    weight: Array,
    bias: Array | None,
    mask: Array | None = None,
    scale: float = 1.0,
    want_slope: bool = True,
    empty: Empty = np.empty,
) -> tuple[Array, Saved]:
    """Half of a product is a gate for the other half:

        [g | u] = x W + b        y = silu(g) · u        with a dropout mask, y = silu(g) · u · mask · scale

    Shapes: x (N, D), weight (D, 2F), bias (2F,) or None, mask (N, F) or None -> y (N, F).

    What backward multiplies by, u silu'(g) and silu(g), takes the places of g and u, which nobody needs any more.
    """
    both = product(x, weight, empty((len(x), weight.shape[1]), x.dtype))
    half = weight.shape[1] // 2
    y = empty((len(x), half), x.dtype)
    for rows in row_blocks(*both.shape):
        block = both[rows]
        if bias is not None:
            block += bias
        gate, up = block[:, :half], block[:, half:]
        passed, slope = gate.copy(), gate if want_slope else None
        silu(passed, slope)
        if mask is not None:
            kept = np.multiply(mask[rows], scale, dtype=y.dtype)
            passed *= kept
            if want_slope:
                slope *= kept
        np.multiply(passed, up, out=y[rows])
        if want_slope:
            slope *= up
            up[...] = passed
    return y, (x, weight, bias is not None, both)


def gated_linear_backward(dy: Array, saved: Saved, empty: Empty = np.empty) -> tuple[Array, Array, Array | None]:
    """A product passes its gradient to each factor, multiplied by the other one:

        dg = dy · u · silu'(g)        du = dy · silu(g)        [dg | du] continues as in `linear_backward`

    Returns dx (N, D), dweight (D, 2F), dbias (2F,) or None.
    """
    x, weight, has_bias, factors = saved
    half = weight.shape[1] // 2
    for rows in row_blocks(*factors.shape):
        block = factors[rows]
        block[:, :half] *= dy[rows]
        block[:, half:] *= dy[rows]
    dx = product(factors, weight.T, empty(x.shape, x.dtype))
    dweight = np.matmul(x.T, factors, out=empty_like(weight, empty))
    return dx, dweight, sum_rows(factors) if has_bias else None

"""Activations: element-wise functions, each with its slope, and the affine maps that are followed by one.

A function turns its argument into its value, in place, and where it is differentiated writes the slope beside it, while
the argument is in the cache; its backward is then one product. The slope is what `dropout` multiplies too, so the three
share one saved array. NumPy lacks the normal distribution Φ(x) = (1 + erf(x / √2)) / 2 of GELU, which stands here too.
"""

import math
from collections.abc import Callable

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, row_blocks
from toolkit.functional.linear import linear_backward, product

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
_erfc = np.vectorize(math.erfc, otypes=[np.float64])  # 1 - erf, exact also where that is nearly 0


def normal_distribution(x: Array, square: Array) -> Array:
    """Φ(x), element by element, in the precision of `x`.  square: x².

    In float32 Φ(x) = (1 + tanh(x P(x²))) / 2 with a polynomial P; in float64, for gradient checks, number by number.
    """
    if x.dtype == np.float64:
        return 0.5 * _erfc(x * -math.sqrt(0.5))
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
    with np.errstate(over="ignore"):  # of a huge number both the square and P may be infinite, and tanh of that is 1
        square = x * x
        probability = normal_distribution(x, square)
    if slope is not None:
        square *= -0.5
        np.exp(square, out=square)
        square *= x
        square *= 1 / math.sqrt(2 * math.pi)
        np.add(square, probability, out=slope)
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


def activated_linear_backward(
    dy: Array, saved: Saved, empty: Empty = np.empty, dweight: Array | None = None
) -> tuple[Array, Array, Array | None]:
    """The chain rule, element by element and then as in `linear_backward`:

        dz = dy · f'(x W + b) · mask · scale        dx = dz Wᵀ        dW = xᵀ dz        db = Σ_n dz_n

    Returns dx (N, D), dweight (D, F), dbias (F,) or None; see `linear_backward` for the array given.
    """
    *affine, slope = saved
    return linear_backward(np.multiply(dy, slope, out=slope), affine, empty, dweight)


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


def gated_linear_backward(
    dy: Array, saved: Saved, empty: Empty = np.empty, dweight: Array | None = None
) -> tuple[Array, Array, Array | None]:
    """A product passes its gradient to each factor, multiplied by the other one:

        dg = dy · u · silu'(g)        du = dy · silu(g)        [dg | du] continues as in `linear_backward`

    Returns dx (N, D), dweight (D, 2F), dbias (2F,) or None; see `linear_backward` for the array given.
    """
    *affine, factors = saved
    half = dy.shape[1]
    for rows in row_blocks(*factors.shape):
        block = factors[rows]
        block[:, :half] *= dy[rows]
        block[:, half:] *= dy[rows]
    return linear_backward(factors, affine, empty, dweight)

"""The gated affine map of SwiGLU (Shazeer 2020, eq. 6): one half of a product decides how much of the other passes."""

import numpy as np

from toolkit.functional.activation import silu
from toolkit.functional.arrays import Array, Empty, Saved, empty_like, row_blocks, sum_rows
from toolkit.functional.few_rows import product


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

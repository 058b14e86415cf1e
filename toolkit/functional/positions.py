"""Positions: waves that are added (Vaswani et al. 2017, section 3.5), and angles to turn by (Su et al. 2021, eq. 34).

Turned by angles that grow with the position, a query and a key have a product that depends on their distance alone:
(R_t q) · (R_s k) = q · (R_{s-t} k). The coordinates of the planes are the two halves of a head.
"""

import math

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, row_blocks


def sinusoidal_positions(length: int, width: int, layout: str = "interleaved", dtype: type = np.float32) -> Array:
    """Waves whose lengths grow from 2π to 20000π, so that PE(p + k) is a rotation of PE(p) for every shift k.

        angle(p, i) = p / 10000^(2i / D)       PE(p, 2i) = sin angle(p, i)       PE(p, 2i + 1) = cos angle(p, i)

    `layout="interleaved"` is the paper's; "halves" puts all sines before all cosines, as several libraries do (the
    same numbers in another order). Returns (length, width). An odd width ends with a sine.

    "fairseq" has the sines first too, counts positions from 2 (below are those of padding), and gives its longest wave
    exactly 20000π: angle(p, i) = (p + 2) / 10000^(i / (D/2 - 1)). An odd width ends with a zero. It is computed in
    float32, as there: at position 1,000 that shows in the fifth digit.
    """
    if layout == "fairseq":
        half = width // 2
        exponents = np.arange(half, dtype=np.float32) * np.float32(-math.log(10000.0) / max(half - 1, 1))
        rates = np.exp(exponents, dtype=np.float64).astype(np.float32)
        angles = np.arange(2, length + 2, dtype=np.float32)[:, None] * rates
        odd = np.zeros((length, width % 2), np.float32)
        return np.hstack((np.sin(angles), np.cos(angles), odd)).astype(dtype, copy=False)
    rates = np.exp(np.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = np.arange(length)[:, None] * rates
    table = np.empty((length, width))
    if layout == "interleaved":
        table[:, 0::2] = np.sin(angles)
        table[:, 1::2] = np.cos(angles[:, : width // 2])
    elif layout == "halves":
        half = angles.shape[1]
        table[:, :half] = np.sin(angles)
        table[:, half:] = np.cos(angles[:, : width - half])
    else:
        raise ValueError(f"unknown layout {layout!r}: 'interleaved', 'halves' or 'fairseq'")
    return table.astype(dtype)


def rotary_table(length: int, width: int, base: float = 10000.0, dtype: type = np.float32) -> tuple[Array, Array]:
    """The cosines and sines of all angles.

        angle(p, i) = p / base^(2i / K)        for i < K / 2

    width: K, of a head, an even number. Returns two arrays (length, K / 2).
    """
    angles = np.arange(length)[:, None] * base ** (-np.arange(0, width, 2) / width)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def rotary(
    x: Array, cosine: Array, sine: Array, out: Array | None = None, empty: Empty = np.empty
) -> tuple[Array, Saved]:
    """Turn coordinate i of every head together with coordinate i + K/2, by the angle of the row's position.

        y_i = x_i cos θ_i - x_{i+K/2} sin θ_i        y_{i+K/2} = x_{i+K/2} cos θ_i + x_i sin θ_i

    (The paper pairs neighbours, 2i and 2i + 1; halves are the same in another order, and what Llama's weights expect.)
    Shapes: x (N, H, K), cosine and sine (N, K/2) of each row's position -> y (N, H, K), written to `out` where given,
    which may be `x` itself.
    """
    return _turn(x, cosine, sine, out, empty), (cosine, sine)


def rotary_backward(dy: Array, saved: Saved, out: Array | None = None, empty: Empty = np.empty) -> tuple[Array]:
    """A rotation's transpose is its inverse: the gradient is turned back by the same angles.

        dx_i = dy_i cos θ_i + dy_{i+K/2} sin θ_i        dx_{i+K/2} = dy_{i+K/2} cos θ_i - dy_i sin θ_i

    Returns dx (N, H, K), written to `out` where given, which may be `dy` itself.
    """
    cosine, sine = saved
    return (_turn(dy, cosine, -sine, out, empty),)


def _turn(x: Array, cosine: Array, sine: Array, out: Array | None, empty: Empty) -> Array:
    count, heads, width = x.shape
    y = empty(x.shape, x.dtype) if out is None else out
    for rows in row_blocks(count, heads * width):
        first, second = x[rows, :, : width // 2], x[rows, :, width // 2 :]
        c, s = cosine[rows, None], sine[rows, None]
        turned = first * c
        turned -= second * s
        crossed = first * s
        np.multiply(second, c, out=y[rows, :, width // 2 :])
        y[rows, :, width // 2 :] += crossed
        y[rows, :, : width // 2] = turned
    return y

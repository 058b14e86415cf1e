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


def rotary_frequencies(width: int, base: float = 10000.0) -> Array:
    """Give how far each plane of a head turns from one position to the next, in radians (Su et al. 2021, eq. 15).

        ω_i = 1 / base^(2i / K)        for i < K / 2

    width: K, of a head, an even number. Returns (K / 2,) in float64.
    """
    return base ** (-np.arange(0, width, 2) / width)


def interpolated_frequencies(frequencies: Array, factor: float) -> Array:
    """Stretch all waves by `factor`: a text as many times longer has the angles of those before (Chen et al. 2023,
    eq. 4).
    """
    return frequencies / factor


def llama3_frequencies(frequencies: Array, factor: float, length: int, low: float, high: float) -> Array:
    """Stretch long waves alone (Llama 3.1, `use_scaled_rope` of Meta's reference code), by how often they turn:

        n_i = length ω_i / 2π        γ_i = (n_i - low) / (high - low), held between 0 and 1
        γ_i ω_i + (1 - γ_i) ω_i / factor

    length: of texts before they were stretched. low, high: waves that turn fewer times in it than `low` are stretched
    by the whole factor, those that turn more than `high` times not at all.
    """
    kept = np.clip((length * frequencies / (2 * math.pi) - low) / (high - low), 0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor


def yarn_frequencies(
    frequencies: Array, factor: float, length: int, low: float, high: float, base: float = 10000.0
) -> Array:
    """Stretch long waves alone (YaRN: Peng et al. 2023, section 3.2), by their place among the planes, as its code has:

        place(n) = K ln(length / (2π n)) / (2 ln base)        the plane that turns n times in `length`
        γ_i = (last - i) / (last - first), held between 0 and 1, with first = ⌊place(high)⌋ and last = ⌈place(low)⌉
        γ_i ω_i + (1 - γ_i) ω_i / factor

    Arguments as of `llama3_frequencies`; base: of the frequencies. (`high` and `low` are β_fast and β_slow there.)
    """
    width = 2 * len(frequencies)
    first, last = (width * math.log(length / (2 * math.pi * turns)) / (2 * math.log(base)) for turns in (high, low))
    first, last = max(math.floor(first), 0), min(math.ceil(last), width - 1)
    kept = 1 - np.clip((np.arange(len(frequencies)) - first) / (last - first or 0.001), 0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor


def rotary_table(length: int, frequencies: Array, scale: float = 1.0, dtype: type = np.float32) -> tuple[Array, Array]:
    """The cosines and sines of all angles, p ω_i, times `scale`.

    scale: makes queries and keys longer, and so attention sharper in longer texts (Peng et al. 2023, section 3.4).
    Returns two arrays (length, K / 2).
    """
    angles = np.arange(length)[:, None] * frequencies
    return (scale * np.cos(angles)).astype(dtype), (scale * np.sin(angles)).astype(dtype)


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
    """Turn the gradient back by the same angles, and scale it by the same number: so does the transpose of `rotary`.

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

"""Sinusoidal position encodings (Vaswani et al. 2017, section 3.5)."""

import math

import numpy as np

from toolkit.functional.arrays import Array


def sinusoidal_positions(length: int, width: int, layout: str = "interleaved", dtype: type = np.float32) -> Array:
    """Waves whose lengths grow from 2π to 20000π, so that PE(p + k) is a rotation of PE(p) for every shift k.

        angle(p, i) = p / 10000^(2i / D)       PE(p, 2i) = sin angle(p, i)       PE(p, 2i + 1) = cos angle(p, i)

    `layout="interleaved"` is the paper's; "halves" puts all sines before all cosines, as several libraries do (the
    same numbers in another order). Returns (length, width). An odd width ends with a sine.
    """
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
        raise ValueError(f"unknown layout {layout!r}: 'interleaved' or 'halves'")
    return table.astype(dtype)

"""The gradient of rotary positions.

The angles depend on the position and not on x: it is a linear map, another one for every row.
"""

import numpy as np


def rotary_gradient(x, base=10000.0):
    """Return x, turned by the angles of its positions, and `back`.

    x: (T, K); y: (T, K); back: dy (T, K) -> dx (T, K)
    """
    length, width = x.shape
    angles = np.arange(length)[:, None] * base ** (-np.arange(0, width, 2) / width)
    cosine, sine = np.cos(angles), np.sin(angles)  # (T, K/2)
    a, b = x[:, : width // 2], x[:, width // 2 :]

    def back(dy):
        raise NotImplementedError

    return np.hstack((a * cosine - b * sine, b * cosine + a * sine)), back

"""The gradient of GELU, the bend between the two linear maps of a feed-forward layer.

y = x Φ(x), with Φ(x) ≈ (1 + tanh u) / 2 and u = √(2/π) (x + 0.044715 x³), as in GPT-2.
"""

import numpy as np


def gelu(x):
    """Return y = x Φ(x), and `back`.

    x: (T, D); back: dy (T, D) -> dx (T, D)
    """
    root = np.sqrt(2 / np.pi)
    tanh = np.tanh(root * (x + 0.044715 * x**3))

    def back(dy):
        return dy * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * root * (1 + 3 * 0.044715 * x**2))

    return 0.5 * x * (1 + tanh), back

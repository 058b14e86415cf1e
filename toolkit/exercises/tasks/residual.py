"""The gradient of a residual connection, which every layer of a transformer has around it.

y = x + layer(norm(x)). The layer and the norm are functions that are given to yours. Each returns its result and its
own `back`, which turns the gradient of the result into that of the rows that went in, one array.
"""

import numpy as np


def residual(x, layer, norm):
    """Return y = x + layer(norm(x)), and `back`.

    x: (T, D), layer and norm: functions, (T, D) -> (T, D), back; back: dy (T, D) -> dx (T, D)
    """
    normal, back_norm = norm(x)
    branch, back_layer = layer(normal)

    def back(dy):
        raise NotImplementedError

    return x + branch, back

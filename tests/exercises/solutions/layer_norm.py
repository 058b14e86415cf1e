"""The gradient of layer norm, which most people get wrong at first.

Every row loses its mean and is divided by its standard deviation; then each column has a gain and a bias of its own.
"""

import numpy as np


def layer_norm(x, gain, bias=0.0, eps=1e-5):
    """Return y = normal · gain + bias, and `back`; normal = (x - mean) / std, of each row.

    x: (T, D), gain and bias: (D,)
    back: dy (T, D) -> dx (T, D), {"gain": dgain (D,), "bias": dbias (D,)}
    """
    std = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    normal = (x - x.mean(axis=-1, keepdims=True)) / std

    def back(dy):
        dnormal = dy * gain
        along = (dnormal * normal).mean(axis=-1, keepdims=True)
        dx = (dnormal - dnormal.mean(axis=-1, keepdims=True) - normal * along) / std
        return dx, {"gain": (dy * normal).sum(axis=0), "bias": dy.sum(axis=0)}

    return normal * gain + bias, back

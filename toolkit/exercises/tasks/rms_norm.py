"""The gradient of RMS norm, which newer models have in the place of layer norm.

Every row is divided by the root of its mean square; no mean is taken away, and there is no bias.
"""

import numpy as np


def rms_norm(x, gain, eps=1e-5):
    """Return y = normal · gain, and `back`; normal = x / root, root = sqrt(mean(x²) + eps), of each row.

    x: (T, D), gain: (D,)
    back: dy (T, D) -> dx (T, D), {"gain": dgain (D,)}
    """
    root = np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
    normal = x / root

    def back(dy):
        raise NotImplementedError

    return normal * gain, back

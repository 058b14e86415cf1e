"""Temperature: how bold a sampled text is.

Scores are divided by the temperature t before softmax. Below 1 the probable tokens become more probable still, above 1
all come closer to each other; towards 0 everything falls to the most probable token. Scores may be large (900, say).
"""

import numpy as np
from softmax import softmax


def temperature(scores, t):
    """Return the probabilities softmax(scores / t); where t is 0: 1 for the most probable token, 0 for all others.

    scores: (V,), t: a number, 0 or more; returns (V,)
    """
    if t == 0:
        return np.eye(len(scores))[scores.argmax()]
    return softmax(scores / t)

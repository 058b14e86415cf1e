"""The mask of a model that writes: a position sees itself and what came before it, not what comes after.

The mask is added to the scores, before softmax: 0 changes nothing, and -inf becomes a weight of exp(-inf) = 0.
"""

import numpy as np


def causal_mask(length):
    """Return the mask: row t is of the position that asks, column s of the one that is asked.

    length: T, an integer -> (T, T), of 0.0 and -inf
    """
    return np.triu(np.full((length, length), -np.inf), 1)

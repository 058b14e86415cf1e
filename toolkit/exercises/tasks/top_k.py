"""Top-k sampling (Fan et al. 2018): only the k most probable tokens may be drawn.

A token with the score -inf has the probability 0. So all but the k largest scores become -inf.
"""

import numpy as np


def top_k(scores, k):
    """Return new scores: the k largest as they are, the others -inf.

    Where several are equal to the k-th largest, all of them are kept.
    scores: (V,), k: an integer from 1 to V; returns (V,)
    """
    raise NotImplementedError

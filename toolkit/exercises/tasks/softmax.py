"""Probabilities from scores.

softmax(x) is exp(x) divided by its sum, for each row by itself: positive numbers that sum to 1. Scores may be large
(900, say), where exp alone gives inf.
"""

import numpy as np


def softmax(x):
    """Turn the rows of scores into probabilities.

    x: (T, D), or one row alone, (D,), as later exercises give it -> the same shape, each row sums to 1
    """
    raise NotImplementedError

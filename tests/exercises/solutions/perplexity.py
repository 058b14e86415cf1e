"""Perplexity: among how many equally probable tokens the model hesitates, on average.

It is exp of the mean of -log p(token). Of several texts together, every token counts the same, whichever text it is in.
"""

import numpy as np


def perplexity(losses, counts):
    """Return the perplexity of several texts together, a number.

    losses: (N,), of every text the mean of -log p(token), counts: (N,) integers, the number of its tokens
    """
    return np.exp((losses * counts).sum() / counts.sum())

"""Self-attention with several heads: queries, keys and values are three linear maps of the same rows.

Each head attends with its K columns; what the heads bring stands side by side again, in their order, and goes through
the output map. (Without biases, as in newer models.)
"""

import numpy as np
from attention import attention
from split_heads import split_heads


def multi_head(x, mask, heads, query, key, value, output):
    """Return what all heads together have found for every position.

    x: (T, D), mask: (T, T), of 0 and -inf, heads: H, an integer
    query, key, value, output: (D, D), the weights of linear maps without a bias, x weight -> (T, D)
    """
    parts = zip(*(split_heads(x @ weight, heads) for weight in (query, key, value)), strict=True)
    return np.hstack([attention(*each, mask) for each in parts]) @ output

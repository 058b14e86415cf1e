"""Attention: every position asks all that it sees, and gets the mean of their values, weighed by how well they fit.

How well a query and a key fit is their product, divided by √K. The mask is 0 where a position is seen and -inf where it
is not.
"""

import numpy as np
from softmax import softmax


def attention(query, key, value, mask):
    """Return softmax(query keyᵀ / √K + mask) value, K being the width of the queries.

    query: (T, K), key: (S, K), value: (S, K), mask: (T, S) -> context (T, K)
    """
    raise NotImplementedError

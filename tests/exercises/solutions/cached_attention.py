"""Attention with a cache, by which writing a token costs one row instead of a whole text.

What a decoder has read does not change: the keys and values of earlier tokens are kept, and a step computes those of
the new token alone. Its query asks them all, its own key included. No mask is needed: what comes later is not there
yet.

The old cache has to stay as it is, because another beam may go on from it.
"""

import numpy as np
from softmax import softmax


def cached_attention(query, key, value, cache):
    """Return the context of a new token, and the cache with it: softmax(query keysᵀ / √K) values.

    query, key, value: (K,), of the new token; cache: (keys (t, K), values (t, K)), oldest first
    returns context (K,), keys (t + 1, K), values (t + 1, K): three arrays
    """
    keys, values = cache
    keys, values = np.vstack((keys, key)), np.vstack((values, value))
    return softmax(keys @ query / np.sqrt(len(query))) @ values, keys, values

"""The gradient of attention: through two products of matrices, and the softmax between them.

Attention has no parameters: `back` returns the gradients of the three arrays. The mask gets none.
"""

import numpy as np
from softmax import softmax


def attention_gradient(query, key, value, mask):
    """Return context = softmax(query keyᵀ / √K + mask) value, and `back`.

    query: (T, K), key: (S, K), value: (S, K), mask: (T, S); context: (T, K)
    back: dcontext (T, K) -> dquery (T, K), dkey (S, K), dvalue (S, K)
    """
    scale = 1 / np.sqrt(query.shape[1])
    weights = softmax(query @ key.T * scale + mask)

    def back(dcontext):
        dweights = dcontext @ value.T
        dscores = weights * (dweights - (weights * dweights).sum(axis=-1, keepdims=True)) * scale
        return dscores @ key, dscores.T @ query, weights.T @ dcontext

    return weights @ value, back

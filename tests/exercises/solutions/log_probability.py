"""The probability of a text: the sum of the log-probabilities of its tokens.

log p(label) = log softmax(scores)[label]. Scores may be far apart or large (1000, say): exp of them is inf, and
probabilities may be too small for a float, though their logarithms are ordinary numbers.
"""

import numpy as np


def log_probability(scores, labels):
    """Return the sum over the places of a text of log p(label), a number.

    scores: (T, V), of all tokens at every place, labels: (T,) integers, the tokens that stand there
    """
    most = scores.max(axis=-1)
    normal = most + np.log(np.exp(scores - most[:, None]).sum(axis=-1))
    return (scores[np.arange(len(labels)), labels] - normal).sum()

"""A batch in parts: where it does not fit in memory, micro-batches are computed one after the other.

Each of them gives the gradient of the mean loss of its own tokens. They have different numbers of tokens. The result is
to be the gradient of the mean over all tokens, as if the batch had been computed at once.
"""


def accumulate(gradients, counts):
    """Return the gradient of the mean over the tokens of all micro-batches.

    gradients: a list of k arrays (D, F), each the gradient of a mean, counts: a list of k integers, the tokens of each;
    returns (D, F)
    """
    return sum(each * count for each, count in zip(gradients, counts, strict=True)) / sum(counts)

"""The loss of a batch with padding.

Texts of different lengths stand in one array, and what is missing from the short ones is filled up with padding. The
loss of a batch is the mean over all its real tokens: each of them counts the same, and padding does not count.
"""


def mean_over_tokens(losses, mask):
    """Return the mean of the losses of all real tokens, a number.

    losses: (B, T), the loss of every place, mask: (B, T), True for real tokens, False for padding
    """
    return (losses * mask).sum() / mask.sum()

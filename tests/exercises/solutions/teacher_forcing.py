"""The texts that a decoder reads in training, and those that it is to predict.

With teacher forcing the model reads the right text, whatever it would have written itself, and predicts at every place
the token that comes next. A mark `begin` stands before a text, so that its first token can be predicted too; a mark
`end` after it is predicted like a token, so that a model learns where to stop.
"""

import numpy as np


def teacher_forcing(ids, begin, end):
    """Return inputs and labels: at each place what is read, and what is to be predicted there.

    ids: (T,) integers, begin and end: integers; inputs and labels: (T + 1,)
    """
    return np.append(begin, ids), np.append(ids, end)

"""Greedy search: the simplest way to write a text.

A model gives a score to every token as the next one. The most probable is written, the model reads it too, and so on,
until it writes the mark `end`, or the text is as long as it may be.
"""

import numpy as np


def greedy(scores_after, ids, end, limit):
    """Write the most probable token until `end`, which is written too, or until there are `limit` tokens.

    scores_after: a function, list of ids -> scores (V,) of the next token; ids: a list of fewer than `limit` integers,
    without `end`, that the text begins with; limit: of all tokens, those of `ids` included
    returns a new list, `ids` and what was written
    """
    ids = list(ids)
    while ids[-1] != end and len(ids) < limit:
        ids.append(int(np.argmax(scores_after(ids))))
    return ids

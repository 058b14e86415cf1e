"""A step of beam search: not one text grows but several, the beams, and the best continuations of all remain.

A beam is a pair (log_prob, ids): the sum of the log-probabilities of what was written, and the text. A beam whose last
id is `end` is finished: it stays as it is, and competes with the others. Every other beam is extended by every token of
the vocabulary, one new beam for each.
"""

import numpy as np
from softmax import softmax


def beam_step(beams, scores_after, width, end):
    """Return the `width` beams with the highest log_prob of all together, a new list, best first.

    beams: a list of pairs (log_prob, ids), a number and a list of integers
    scores_after: a function, list of ids -> scores (V,) of the next token, no log-probabilities yet
    """
    raise NotImplementedError

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
    found = []
    for log_prob, ids in beams:
        if ids[-1] == end:
            found.append((log_prob, ids))
            continue
        log_probs = np.log(softmax(np.asarray(scores_after(ids))))
        found += [(log_prob + each, [*ids, token]) for token, each in enumerate(log_probs)]
    return sorted(found, key=lambda beam: -beam[0])[:width]

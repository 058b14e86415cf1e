"""Beam search, from the beginning to the choice of a text.

It begins with one beam, [begin], whose log-probability is 0, and takes steps until every beam is finished (its last
id is `end`) or has `limit` tokens. Every token makes a text less probable, so that a comparison by log-probability
alone prefers the shortest. The best beam is therefore the one with the highest log_prob / length**alpha, where length
is the number of tokens that were written: `end` is one of them, `begin` is not.
"""

from beam_step import beam_step


def beam_search(scores_after, begin, end, width, limit, alpha):
    """Return the ids of the best beam, a list, with `begin`.

    scores_after: a function, list of ids -> scores (V,) of the next token; begin, end: integers; width: of beams
    limit: of all tokens of a beam, `begin` included; alpha: a number, 0 or more
    """
    beams = [(0.0, [begin])]
    while any(ids[-1] != end and len(ids) < limit for _, ids in beams):
        beams = beam_step(beams, scores_after, width, end)
    return max(beams, key=lambda beam: beam[0] / (len(beam[1]) - 1) ** alpha)[1]

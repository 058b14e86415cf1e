"""Exercises on writing: search, the cache, sampling (drawing.py), and how probable a text is.

A model is a function here, from the ids of a text to the scores of the next token.
"""

import numpy as np

from toolkit import plain
from toolkit.decoding.hypothesis import length_penalty
from toolkit.decoding.sampling import log_sum_exp
from toolkit.evaluation.perplexity import perplexity as measures
from toolkit.exercises.drawing import DRAWING, V, telling
from toolkit.exercises.exercise import Arguments, Exercise, Mistake
from toolkit.functional.arrays import Array

T, K = 5, 4
SIZES = {"T": T, "K": K, "V": V}
END, BEGIN = 0, 1
_LONGEST = 40  # tokens of a text, many more than any limit here
_MOST_CALLS = 1000


class ScoresAfter:
    """A model of a table: the scores after a text are those after each of its tokens, of earlier ones less and less."""

    def __init__(self, table: Array):
        self._table, self._calls = table, 0

    def __call__(self, ids: list[int]) -> Array:
        self._calls += 1
        if len(ids) > _LONGEST or self._calls > _MOST_CALLS:
            raise ValueError(f"the scores after {len(ids)} tokens are asked for, again and again: does the loop end?")
        return 0.5 ** np.arange(len(ids))[::-1] @ self._table[np.array(ids, dtype=int)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScoresAfter) and np.array_equal(self._table, other._table)

    __hash__ = None


def _table(rng: np.random.Generator, size: int) -> ScoresAfter:
    return ScoresAfter(1.5 * rng.standard_normal((size, size)))


# greedy search


def beginning(rng: np.random.Generator) -> Arguments:
    """A model, two tokens, and a limit that about half of the texts reach."""
    return _table(rng, V), rng.integers(END + 1, V, 2).tolist(), END, 8


def greedy(scores_after, ids, end, limit):
    return plain.greedy(lambda seen: scores_after(seen)[None], ids, end, limit)


def greedy_without_an_end(scores_after, ids, end, limit):
    return greedy(scores_after, ids, None, limit)


def greedy_that_drops_the_end(scores_after, ids, end, limit):
    written = greedy(scores_after, ids, end, limit)
    return written[:-1] if written[-1] == end else written


def greedy_of_one_more(scores_after, ids, end, limit):
    return greedy(scores_after, ids, end, limit + 1)


def greedy_of_so_many_new(scores_after, ids, end, limit):
    return greedy(scores_after, ids, end, limit + len(ids))


def greedy_of_the_last_token(scores_after, ids, end, limit):
    return greedy(lambda seen: scores_after(seen[-1:]), ids, end, limit)


GREEDY_MISTAKES = (
    Mistake(greedy_without_an_end, "it writes on after `end`: stop when the last token is `end`"),
    Mistake(greedy_that_drops_the_end,
        "`end` is missing from your list: it is written like any token, and then you stop"),
    Mistake(greedy_of_one_more,
        "there is one token too many: stop when there are `limit`, so go on while there are fewer (<, not <=)"),
    Mistake(greedy_of_so_many_new,
        "you write `limit` new tokens: the limit is of the whole list, with the `ids` that it begins with"),
    Mistake(greedy_of_the_last_token,
        "scores_after is given the last token alone: it has to read everything that was written so far"),
    Mistake(lambda scores_after, ids, *limits: greedy(scores_after, ids, *limits)[len(ids) :],
        "you return only what was written: the list begins with `ids`"),
)  # fmt: skip

GREEDY = Exercise(
    "greedy", "Greedy search", greedy, telling(beginning, greedy, GREEDY_MISTAKES, 2), ("ids",),
    (
        "You do not know how many tokens there will be: a while loop, with two reasons to end.",
        "Copy first (ids = list(ids)); while ids[-1] != end and len(ids) < limit, append the argmax of "
        "scores_after(ids), as an int.",
    ),
    "toolkit/plain.py: greedy; toolkit/decoding/loop.py: GenerationLoop",
    GREEDY_MISTAKES, calls=20,
)  # fmt: skip


# attention with a cache


def token_and_cache(rng: np.random.Generator) -> Arguments:
    query, key, value = rng.standard_normal((3, K))
    keys, values = rng.standard_normal((2, T, K))
    return query, key, value, (keys, values)


def _cached(scale: float = K**-0.5, first: bool = False, before: bool = False, swapped: bool = False):
    """Make attention of a new token: the scale of its scores, and what may be wrong with the cache.

    first: the new token comes first, before: it is not there yet when the query asks, swapped: keys for values.
    """

    def cached_attention(query, key, value, cache):
        keys, values = (
            np.vstack((new, old) if first else (old, new)) for old, new in zip(cache, (key, value), strict=True)
        )
        asked, read = cache if before else (values, keys) if swapped else (keys, values)
        return plain.softmax(asked @ query * scale) @ read, keys, values

    return cached_attention


def cached_attention(query, key, value, cache):
    keys, values = (np.vstack((old, new)) for old, new in zip(cache, (key, value), strict=True))
    return plain.attention(query[None], keys, values, 0.0)[0][0], keys, values


CACHED_ATTENTION = Exercise(
    "cached_attention", "One step of attention with a cache", cached_attention, token_and_cache,
    ("context", "keys", "values"),
    (
        "First make the new cache, np.vstack((keys, key)): it is one row longer, and the old arrays stay as they are.",
        "It is attention with one query and no mask: the scores are keys @ query / √K, (t + 1,) of them.",
        "context = softmax(keys @ query / √K) @ values, with the keys and values of the new cache.",
    ),
    "toolkit/decoding/cache.py: CachedAttention",
    (
        Mistake(_cached(before=True),
            "the new token does not see itself: its key and value have to be in the cache before its query asks"),
        Mistake(_cached(first=True),
            "the new key and value stand before the old ones: the oldest is first, the new token last"),
        Mistake(_cached(scale=1.0),
            "the scores are not divided by √K: a step has to do what attention does in training"),
        Mistake(_cached(scale=1 / K), "the scores are divided by K: it is its root, √K"),
        Mistake(_cached(swapped=True),
            "keys and values are exchanged: the query is compared with the keys, and the context made of the values"),
        Mistake(lambda *new: (cached_attention(*new)[0], *new[-1]),
            "you return the old cache: the next token has to find the key and value of this one in it"),
    ),
    SIZES,
)  # fmt: skip


# the probability of a text


def scores_far_apart(rng: np.random.Generator) -> Arguments:
    """Scores of which a row is large, or else a label of which the probability is too small for a float."""
    scores, labels = 3 * rng.standard_normal((T, V)), rng.integers(0, V, T)
    if rng.random() < 0.5:
        scores[1] += 900
    else:
        scores[3, labels[3]] -= 1000
    return scores, labels


def _of_labels(scores, labels):
    return scores[np.arange(len(labels)), labels]


def log_probability(scores, labels):
    return float((_of_labels(scores, labels) - log_sum_exp(scores)).sum())


def log_probability_as_a_loss(scores, labels):
    return -log_probability(scores, labels)


def log_probability_of_a_token(scores, labels):
    return log_probability(scores, labels) / len(labels)


def log_probability_that_overflows(scores, labels):
    with np.errstate(over="ignore"):
        return float((_of_labels(scores, labels) - np.log(np.exp(scores).sum(axis=1))).sum())


def log_probability_that_vanishes(scores, labels):
    with np.errstate(divide="ignore"):
        return float(np.log(_of_labels(plain.softmax(scores), labels)).sum())


LOG_PROBABILITY = Exercise(
    "log_probability", "How probable a text is", log_probability, scores_far_apart, ("log_probability",),
    (
        "log softmax(z)_i = z_i - log Σ exp(z): no probability is needed, which could be too small for a float.",
        "log Σ exp(z) = m + log Σ exp(z - m), for any m: with the largest z of the row as m nothing overflows.",
        "With m the largest score of each row: the sum over the places of score(label) - m - log Σ exp(scores - m).",
    ),
    "toolkit/decoding/sampling.py: log_sum_exp; toolkit/decoding/scoring.py",
    (
        Mistake(log_probability_as_a_loss,
            "the sign is that of a loss: a log-probability is the logarithm of a number below 1, and so negative"),
        Mistake(log_probability_of_a_token,
            "that is the mean over the places: the probability of a text is a product, so its logarithm is the sum"),
        Mistake(log_probability_that_overflows,
            "exp overflows for large scores: take the largest of each row away first, and add it to the logarithm"),
        Mistake(log_probability_that_vanishes,
            "a probability is too small for a float and becomes 0, whose logarithm is -inf: compute the logarithm from "
            "the scores, z - log Σ exp(z), not from softmax"),
        Mistake(lambda scores, labels: log_probability(scores, labels) + float(scores.max(axis=1).sum()),
            "the maximum is taken from the scores inside exp alone: add it again, log Σ exp(z) = m + log Σ exp(z - m)"),
        Mistake(lambda scores, labels: float(_of_labels(scores, labels).sum()),
            "you add scores, which are no log-probabilities yet: log Σ exp of the row has to be taken from each"),
    ),
    SIZES, calls=12,
)  # fmt: skip


# perplexity


def losses_and_counts(rng: np.random.Generator) -> Arguments:
    return rng.uniform(1, 5, T), rng.integers(2, 40, T)


def perplexity(losses, counts):
    return measures(float(losses @ counts), int(counts.sum()), 0).perplexity


PERPLEXITY = Exercise(
    "perplexity", "Perplexity of several texts", perplexity, losses_and_counts, ("perplexity",),
    (
        "A text's mean loss times its number of tokens is the sum of its losses.",
        "exp of the sum of all losses, Σ losses · counts, divided by the number of all tokens, Σ counts.",
    ),
    "toolkit/evaluation/perplexity.py: pooled",
    (
        Mistake(lambda losses, counts: float(np.exp(losses.mean())),
            "every text counts the same, however short: weigh its loss by its number of tokens"),
        Mistake(lambda losses, counts: float(np.exp(losses).mean()),
            "that is the mean of the perplexities of the texts: one bad text would outweigh all others; take the mean "
            "of the losses of all tokens first, then exp"),
        Mistake(lambda losses, counts: float(np.exp(losses) @ counts / counts.sum()),
            "you take the mean of perplexities, weighed by tokens: the mean is of the losses, and exp comes last"),
        Mistake(lambda losses, counts: float(losses @ counts / counts.sum()),
            "that is the mean loss: its exp is the perplexity"),
        Mistake(lambda losses, counts: float(2 ** (losses @ counts / counts.sum())),
            "you raise 2 to the loss: losses are natural logarithms here, so it is exp"),
        Mistake(lambda losses, counts: float(np.exp(losses @ counts / len(losses))),
            "the sum of all losses is divided by the number of texts: divide it by the number of tokens"),
    ),
)  # fmt: skip


# a step of beam search


def beams_of_a_step(rng: np.random.Generator) -> Arguments:
    """Three beams of which one is finished, in any order of them."""
    ids = [[BEGIN, *rng.integers(BEGIN + 1, V, 2).tolist()] for _ in range(3)]
    ids[rng.integers(3)][-1] = END
    return list(zip((-np.sort(rng.uniform(1, 5, 3))).tolist(), ids, strict=True)), _table(rng, V), 3, END


def _log_softmax(scores):
    return scores - log_sum_exp(scores[None])[0]


def _best(beams, width):
    return sorted(beams, key=lambda beam: -beam[0])[:width]


def _extended(beam, scores_after, log_softmax=_log_softmax):
    log_prob, ids = beam
    return [(log_prob + float(each), [*ids, token]) for token, each in enumerate(log_softmax(scores_after(ids)))]


def _is_finished(beam, end):
    return beam[1][-1] == end


def _beam_step(extended=_extended, finished=lambda beam, scores_after: [beam], best=_best):
    """Make a step of what becomes of a beam that goes on, of one that is finished, and of all together."""

    def beam_step(beams, scores_after, width, end):
        new = []
        for beam in beams:
            new += (finished if _is_finished(beam, end) else extended)(beam, scores_after)
        return best(new, width)

    return beam_step


beam_step = _beam_step()


BEAM_STEP_MISTAKES = (
    Mistake(_beam_step(finished=_extended),
        "the finished beam is extended too: nothing comes after `end`, it stays as it is"),
    Mistake(_beam_step(finished=lambda beam, scores_after: []),
        "the finished beam is lost: it stays among the beams as it is, and competes with the others"),
    Mistake(_beam_step(lambda beam, scores_after: _extended(beam, scores_after, lambda scores: scores)),
        "you add the scores as they are: scores of different beams can be compared only as log-probabilities, log "
        "softmax(scores)"),
    Mistake(_beam_step(lambda beam, scores_after: _extended((0.0, beam[1]), scores_after)),
        "the log-probability of what a beam had already is lost: that of the new token is added to it"),
    Mistake(_beam_step(lambda beam, scores_after: _best(_extended(beam, scores_after), 1)),
        "each beam has one continuation, its best: the best of all together may be two of the same beam"),
    Mistake(_beam_step(best=lambda beams, width: sorted(beams, key=lambda beam: beam[0])[:width]),
        "you keep the worst: sorted begins with the smallest log_prob (reverse=True)"),
)  # fmt: skip

BEAM_STEP = Exercise(
    "beam_step", "A step of beam search", beam_step, telling(beams_of_a_step, beam_step, BEAM_STEP_MISTAKES, 6),
    ("beams",),
    (
        "Collect all candidates of all beams in one list, and choose at the very end.",
        "A finished beam is a candidate itself. Another one gives V of them: (log_prob + log softmax(scores)[token], "
        "[*ids, token]) for every token.",
        "sorted(candidates, key=lambda beam: beam[0], reverse=True)[:width]",
    ),
    "toolkit/decoding/sampling.py: best_continuations; toolkit/decoding/beam.py: BeamSearch.advance",
    (
        *BEAM_STEP_MISTAKES,
        Mistake(_beam_step(lambda beam, scores_after: [(beam[0] * np.exp(each), [*beam[1], token])
                for token, each in enumerate(_log_softmax(scores_after(beam[1])))]),
            "a log-probability is multiplied by a probability: the log of a product is a sum, so add log p(token)"),
        Mistake(_beam_step(best=lambda beams, width: _best(beams, len(beams))),
            "all continuations are kept: only the `width` best of all together go on"),
    ),
    points=2,
)  # fmt: skip


# beam search


def search_settings(rng: np.random.Generator) -> Arguments:
    """A model that ends now and then, and a length penalty that matters."""
    table = rng.standard_normal((6, 6))
    table[:, END] += 0.5
    table[:, BEGIN] -= 9
    return ScoresAfter(table), BEGIN, END, 4, int(rng.integers(5, 8)), float(rng.uniform(0.6, 1.6))


def _over(beams, end, limit):
    return all(_is_finished(beam, end) or len(beam[1]) >= limit for beam in beams)


def _beam_search(over=_over, score=lambda log_prob, length, alpha: log_prob / length_penalty(length, alpha)):
    """Make a search of when it is over, and the score of a beam by its length without `begin`."""

    def beam_search(scores_after, begin, end, width, limit, alpha):
        beams = [(0.0, [begin])]
        while not _over(beams, end, limit + 1) and not over(beams, end, limit):
            beams = beam_step(beams, scores_after, width, end)
        return max(beams, key=lambda beam: score(beam[0], len(beam[1]) - 1, alpha))[1]

    return beam_search


beam_search = _beam_search()


BEAM_SEARCH_MISTAKES = (
    Mistake(_beam_search(score=lambda log_prob, length, alpha: log_prob / (length + 1) ** alpha),
        "`begin` is counted in the length: it was given, not written, and short texts gain too much by it"),
    Mistake(_beam_search(score=lambda log_prob, length, alpha: log_prob),
        "the shortest texts win: the best has the highest (max) log_prob / length**alpha; a sum of logs is negative"),
    Mistake(_beam_search(lambda beams, end, limit: _over(beams[:1], end, limit)),
        "you stop when the first beam is finished: another may still become better for its length, so go on until all "
        "are finished or at the limit"),
    Mistake(_beam_search(lambda beams, end, limit: _over(beams, end, limit + 1)),
        "the texts are one token longer than the limit: it is of all tokens, `begin` included"),
    Mistake(lambda *settings: beam_search(*settings)[1:],
        "`begin` is missing from your list: it does not count in the length, but the text begins with it"),
)  # fmt: skip

BEAM_SEARCH = Exercise(
    "beam_search", "Beam search", beam_search, telling(search_settings, beam_search, BEAM_SEARCH_MISTAKES, 3),
    ("ids",),
    (
        "A loop around beam_step, whose result are the next beams; it begins with [(0.0, [begin])].",
        "It is over when for every beam ids[-1] == end or len(ids) >= limit. All that are not finished are of the same "
        "length.",
        "At the end max(beams, key=...), of log_prob / (len(ids) - 1)**alpha. The sums are negative: a division makes "
        "them larger.",
    ),
    "toolkit/decoding/beam.py: BeamSearch; toolkit/decoding/hypothesis.py: length_penalty",
    BEAM_SEARCH_MISTAKES, points=2, calls=20,
)  # fmt: skip

WRITING = (GREEDY, CACHED_ATTENTION, *DRAWING, LOG_PROBABILITY, PERPLEXITY, BEAM_STEP, BEAM_SEARCH)

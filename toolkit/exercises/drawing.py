"""Exercises on drawing a token: temperature, top-k, top-p, and the draw itself.

Few scores or one id are what these return, and two mistakes often give the same: numbers are drawn until every mistake
that shows can be told from the others.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from toolkit import plain
from toolkit.decoding.sampling import draw, nucleus, weights_of
from toolkit.exercises.comparing import same
from toolkit.exercises.exercise import Arguments, Exercise, Mistake

V = 8
SIZES = {"V": V}


def telling(make: Callable, right: Callable, mistakes: tuple[Mistake, ...], showing: int = 1) -> Callable:
    """Draw arguments with which mistakes give something wrong, and each of these something else.

    showing: at least so many are wrong, among them one that is drawn by lot.
    """

    def tells(arguments: Arguments, lot: int) -> bool:
        wanted = right(*arguments)
        if same(mistakes[lot].function(*arguments), wanted):
            return False
        found = (each.function(*arguments) for each in mistakes)
        wrong: list[Any] = [each for each in found if not same(each, wanted)]
        return len(wrong) >= showing and not any(same(one, other) for one, other in combinations(wrong, 2))

    def draw_arguments(rng: np.random.Generator) -> Arguments:
        lot = int(rng.integers(len(mistakes)))
        while not tells(arguments := make(rng), lot):
            pass
        return arguments

    return draw_arguments


# temperature


def large_scores_and_temperature(rng: np.random.Generator) -> Arguments:
    """Scores so large that exp alone overflows, and in half of all cases the temperature 0."""
    return 900 + 3 * rng.standard_normal(V), float(rng.choice([0.0, rng.uniform(0.3, 0.8), rng.uniform(1.5, 3), 0.0]))


def temperature(scores, t):
    return plain.softmax(scores / t) if t else np.eye(len(scores))[scores.argmax()]


def temperature_as_a_factor(scores, t):
    return plain.softmax(scores * t) if t else temperature(scores, 0)


def temperature_of_probabilities(scores, t):
    return plain.softmax(scores) / t if t else temperature(scores, 0)


def temperature_divided_by_0(scores, t):
    with np.errstate(divide="ignore", invalid="ignore"):
        return plain.softmax(scores / np.float64(t))


def temperature_off_at_0(scores, t):
    return plain.softmax(scores / t if t else scores)


def temperature_that_overflows(scores, t):
    with np.errstate(over="ignore", invalid="ignore"):
        exp = np.exp(scores / t) if t else temperature(scores, 0)
        return exp / exp.sum()


TEMPERATURE = Exercise(
    "temperature", "Temperature", temperature, large_scores_and_temperature, ("probabilities",),
    (
        "The division comes before softmax. And t = 0 is a case of its own: nothing can be divided by it.",
        "softmax(scores / t) where t is not 0; otherwise an array of zeros, with 1 at scores.argmax().",
    ),
    "toolkit/decoding/sampling.py: weights_of",
    (
        Mistake(temperature_as_a_factor,
            "the scores are multiplied by t: it has to divide them, so that a low temperature widens differences"),
        Mistake(lambda scores, t: plain.softmax(scores * t),
            "the scores are multiplied by t: it has to divide them, and t = 0 is a case of its own"),
        Mistake(temperature_of_probabilities,
            "the probabilities are divided by t, and no longer sum to 1: divide the scores, before softmax"),
        Mistake(temperature_divided_by_0,
            "t = 0 divides by zero, and all is nan: it is a case of its own, 1 for the most probable token"),
        Mistake(temperature_off_at_0,
            "t = 0 gives what t = 1 gives: it means that all falls to the most probable token"),
        Mistake(temperature_that_overflows,
            "exp overflows for large scores: take the largest away first, as your softmax does"),
    ),
    SIZES, calls=12,
)  # fmt: skip


# top-k


def scores_and_count(rng: np.random.Generator) -> Arguments:
    """Scores of which in half of all cases two share the k-th place, and k."""
    scores, k = 2 * rng.standard_normal(V), int(rng.integers(2, V - 1))
    if rng.random() < 0.5:
        order = np.argsort(-scores)
        scores[order[k]] = scores[order[k - 1]]
    return scores, k


def _kept(scores, kept, other=-np.inf):
    return np.where(kept, scores, other)


def top_k(scores, k):
    return _kept(scores, scores >= np.sort(scores)[-k])


def top_k_on_ties(scores, k):
    kept = np.zeros(len(scores), bool)
    kept[np.argsort(-scores, kind="stable")[:k]] = True
    return _kept(scores, kept)


def top_k_by_the_last_places(scores, k):
    kept = np.zeros(len(scores), bool)
    kept[np.argsort(scores)[-k:]] = True
    return _kept(scores, kept)


TOP_K_MISTAKES = (
    Mistake(top_k_on_ties,
        "where several tokens have the k-th largest score, you keep some of them: keep all that are equal to it"),
    Mistake(lambda scores, k: _kept(scores, scores > np.sort(scores)[-k]),
        "the k-th largest is dropped: it is one of the k, so keep what is equal to it too (>=, not >)"),
    Mistake(lambda scores, k: _kept(scores, scores >= np.sort(scores)[-k - 1]),
        "one token too many is kept: the k-th largest is at [-k] if you sorted upwards, at [k - 1] if downwards"),
    Mistake(lambda scores, k: _kept(scores, scores >= np.sort(scores)[-k], 0.0),
        "the others have the score 0, with which they can still be drawn: only -inf becomes the probability 0"),
    Mistake(lambda scores, k: _kept(scores, scores <= np.sort(scores)[k - 1]),
        "the k smallest scores are kept: np.sort begins with the smallest"),
)  # fmt: skip

TOP_K = Exercise(
    "top_k", "Top-k", top_k, telling(scores_and_count, top_k, TOP_K_MISTAKES, 3), ("scores",),
    (
        "You need one number: the k-th largest score. What is below it becomes -inf.",
        "It is np.sort(scores)[-k]; np.where(scores >= it, scores, -np.inf) keeps those that are equal to it.",
    ),
    "toolkit/decoding/sampling.py: top_k_tokens, which keeps exactly k",
    (*TOP_K_MISTAKES, Mistake(top_k_by_the_last_places, TOP_K_MISTAKES[0].told)), SIZES, calls=12,
)  # fmt: skip


# top-p


def scores_and_mass(rng: np.random.Generator) -> Arguments:
    return 1.5 * rng.standard_normal(V), float(rng.uniform(0.3, 0.9))


def top_p(scores, p):
    return _kept(scores, nucleus(weights_of(scores[None], 1.0), p)[0])


def _top_p(kept, order=lambda scores: np.argsort(-scores)):
    """Make a top-p: kept(probability of those before, probability, p) in an order."""

    def top_p(scores, p):
        places = order(scores)
        probabilities = plain.softmax(scores)[places]
        before = np.cumsum(probabilities) - probabilities
        result = np.full(len(scores), -np.inf)
        chosen = places[kept(before, probabilities, p)]
        result[chosen] = scores[chosen]
        return result

    return top_p


def _right_nucleus(before, probabilities, p):
    return before < p


def top_p_out_of_place(scores, p):
    return -np.sort(-top_p(scores, p))


def top_p_of_probabilities(scores, p):
    return _kept(plain.softmax(scores), top_p(scores, p) > -np.inf)


TOP_P_MISTAKES = (
    Mistake(_top_p(lambda before, own, p: before + own <= p),
        "the token that crosses p is dropped: without it the sum is below p (and one very probable token would be "
        "dropped too); keep a token if those before it sum to less than p"),
    Mistake(_top_p(lambda before, own, p: np.concatenate(([True], (before < p)[:-1]))),
        "one token too many is kept: the one that crosses p is the last"),
    Mistake(_top_p(_right_nucleus, lambda scores: np.arange(len(scores))),
        "the probabilities are summed in the order of the ids: sort them first, the most probable at the beginning"),
    Mistake(_top_p(_right_nucleus, np.argsort),
        "you begin with the least probable tokens: np.argsort goes upwards, so sort the negative scores"),
    Mistake(top_p_out_of_place,
        "the scores are in the order in which you sorted them: each has to go back to the place of its id"),
    Mistake(top_p_of_probabilities,
        "those that are kept have become probabilities: return their scores, probabilities only tell which"),
)  # fmt: skip

TOP_P = Exercise(
    "top_p", "Top-p, the nucleus", top_p, telling(scores_and_mass, top_p, TOP_P_MISTAKES, 5), ("scores",),
    (
        "Sort the tokens by probability, and remember which is which: order = np.argsort(-scores).",
        "np.cumsum of the sorted probabilities is the sum with each token; without it, that of those before it.",
        "A token is kept if those before it sum to less than p. Write scores[kept] into an array full of -inf, at the "
        "same ids, kept = order[sum before < p].",
    ),
    "toolkit/decoding/sampling.py: nucleus",
    TOP_P_MISTAKES, SIZES, points=2, calls=6,
)  # fmt: skip


# sampling


def probabilities_and_number(rng: np.random.Generator) -> Arguments:
    """Probabilities in parts of 64, some of them 0, and a number that in half of all cases is where a token begins."""
    probabilities = rng.multinomial(64, rng.dirichlet(np.full(V, 0.8))) / 64
    begins = np.cumsum(probabilities) - probabilities
    return probabilities, float(rng.choice([rng.choice(begins[probabilities > 0]), rng.integers(64) / 64]))


def sample(probabilities, u):
    return int(draw(probabilities[None], np.array([u]))[0])


def sample_at_the_border(probabilities, u):
    return int((np.cumsum(probabilities) >= u).argmax())


def sample_the_next(probabilities, u):
    return sample(probabilities, u) + 1


def sample_by_each_alone(probabilities, u):
    return int((probabilities > u).argmax())


def sample_the_best(probabilities, u):
    return int(probabilities.argmax())


def sample_all_alike(probabilities, u):
    return int(u * len(probabilities))


def sample_in_sorted_order(probabilities, u):
    return sample(np.sort(probabilities)[::-1], u)


SAMPLE_MISTAKES = (
    Mistake(sample_at_the_border,
        "a number on a border belongs to the next token: the cumulative sum has to exceed u (>, not >=); yours can "
        "draw a token of probability 0, for u = 0"),
    Mistake(sample_the_next, "you are one id too far: the first token whose cumulative sum exceeds u is the one"),
    Mistake(sample_by_each_alone, "u is compared with each probability by itself: compare it with the cumulative sum"),
    Mistake(sample_the_best, "that is always the most probable token, whatever u is"),
    Mistake(sample_all_alike, "all tokens are drawn alike: the probabilities have to count"),
    Mistake(sample_in_sorted_order,
        "that is a place in the sorted probabilities, no id: sum them up in the order of the ids, without sorting"),
)  # fmt: skip

SAMPLE = Exercise(
    "sample", "Drawing a token", sample, telling(probabilities_and_number, sample, SAMPLE_MISTAKES, 4), ("id",),
    (
        "The pieces end at np.cumsum(probabilities): [0.5, 0.2, 0.3] has the pieces to 0.5, to 0.7 and to 1.",
        "The first id whose cumulative sum is greater than u: (np.cumsum(probabilities) > u).argmax().",
    ),
    "toolkit/decoding/sampling.py: draw",
    SAMPLE_MISTAKES, calls=20,
)  # fmt: skip

DRAWING = (TEMPERATURE, TOP_K, TOP_P, SAMPLE)

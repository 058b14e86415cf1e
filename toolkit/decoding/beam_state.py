"""Pieces of beam search: the finished hypotheses, when a sentence is settled, which beam takes which place."""

import bisect

import numpy as np

from toolkit.decoding.hypothesis import Hypothesis, length_penalty
from toolkit.functional.arrays import Array


class Finished:
    """The best complete hypotheses of every sentence, at most `wanted` of each, best first."""

    def __init__(self, sentences: int, wanted: int):
        self.wanted = wanted
        self.hypotheses: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.thresholds = np.full(sentences, -np.inf)  # a new hypothesis counts if its score is above

    def add(self, sentence: int, hypothesis: Hypothesis) -> None:
        best = self.hypotheses[sentence]
        bisect.insort(best, hypothesis, key=lambda each: -each.score)
        del best[self.wanted :]
        if len(best) == self.wanted:
            self.thresholds[sentence] = best[-1].score


def settled(live: Array, thresholds: Array, shortest: int, limits: Array, power: float) -> Array:
    """Whether no unfinished hypothesis can still displace a finished one.

    Log-probabilities only fall, so the best that can become of a hypothesis is its present log-probability at the
    most favourable length: the limit where the penalty grows with length, otherwise the `shortest` still possible.

        settled = best live log-probability / penalty(most favourable length) ≤ worst finished score that is wanted

    Shapes: live, thresholds, limits (B,) -> (B,) of bool.
    """
    lengths = limits if power > 0 else np.full(len(limits), shortest)
    return live / length_penalty(lengths.astype(float), power) <= thresholds


def keep_in_place(parents: Array) -> Array:
    """An order of new beams in which the first child of each beam stands where its parent stood.

    What stands in its parent's place needs no copy of the cache. Shapes: parents (B, K) in [0, K) -> (B, K), indices
    into the second axis.
    """
    count = parents.shape[1]
    same = parents[:, :, None] == np.arange(count)  # (B, child, place)
    first = np.cumsum(same, axis=1) == 1
    first &= same
    settled_children, taken = first.any(axis=2), first.any(axis=1)
    # As many children are left as places: pair them in order. Stable sorting puts the False ones first.
    order = np.empty_like(parents)
    free = np.argsort(taken, axis=1, kind="stable")
    np.put_along_axis(order, free, np.argsort(settled_children, axis=1, kind="stable"), axis=1)
    return np.where(taken, first.argmax(axis=1), order)

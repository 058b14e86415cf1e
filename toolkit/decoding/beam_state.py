"""Pieces of beam search: the finished hypotheses, and when a search is over."""

import bisect

import numpy as np

from toolkit.decoding.config import GenerationConfig
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


def settled(live: Array, thresholds: Array, lengths: Array | int, power: float) -> Array:
    """Whether the best unfinished hypothesis, scored as if it had one of these `lengths`, would displace none.

        settled = best live log-probability / length ** power ≤ worst finished score that counts

    Shapes: live, thresholds, lengths (B,) -> (B,) of bool.
    """
    return live / length_penalty(np.asarray(lengths, float), power) <= thresholds


def search_is_over(config: GenerationConfig, live: Array, thresholds: Array, written: int, limits: Array) -> Array:
    """Which sentences are done by the rule `early_stopping`, when unfinished hypotheses have `written` tokens.

    Log-probabilities only fall, so the best that can become of a hypothesis is its present log-probability at the
    most favourable length: the limit where the penalty grows with length, otherwise the shortest still possible.
    "settled" looks at that one, Hugging Face's rules at the lengths that they look at.
    Shapes: live (B,) best unfinished log-probabilities, thresholds and limits (B,) -> (B,) of bool.
    """
    rule, power = config.early_stopping, config.length_penalty
    if rule is True:
        return (thresholds > -np.inf) | (live == -np.inf)
    if power > 0 and rule is not False:
        return settled(live, thresholds, limits, power)
    return settled(live, thresholds, written + 1 if rule == "settled" else written, power)

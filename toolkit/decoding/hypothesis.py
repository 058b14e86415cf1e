"""What decoding gives back, and how hypotheses of different lengths are compared."""

import math
from typing import NamedTuple

from toolkit.functional.arrays import Array


class Hypothesis(NamedTuple):
    """One output of a model.

    `log_prob` is the sum over its tokens, end mark included, of what the model gives each as the next one, whatever
    was excluded, forced or reshaped in choosing it: teacher forcing finds the same number. Where the length limit cut
    an output short, `forced_end` of `GenerationConfig` says what its end mark counts. `score` is log_prob divided by
    the length penalty; beam search with a repetition penalty ranks by, and reports, the penalised sum divided by it.
    """

    ids: list[int]  # without begin and end marks
    score: float  # what outputs of one text are compared by
    log_prob: float
    finished: bool  # False where the length limit ended it, not the model or a stop string
    token_log_probs: list[float]  # of ids, then of the end mark where there is one; their sum is log_prob


def hypothesis_of(ids: list[int], token_log_probs: list[float], power: float, finished: bool) -> Hypothesis:
    """A hypothesis with its sums, which do not depend on what it was batched with: `fsum` rounds once."""
    log_prob = math.fsum(token_log_probs)
    return Hypothesis(ids, log_prob / length_penalty(len(token_log_probs), power), log_prob, finished, token_log_probs)


def length_penalty(length: Array | int, power: float) -> Array | float:
    """length ** power, the divisor of a log-probability (Hugging Face's definition); the end mark counts as a token.

    0 compares log-probabilities, which favours short outputs; 1 compares averages per token.
    """
    return length**power

"""What decoding gives back, and how hypotheses of different lengths are compared."""

from typing import NamedTuple

from toolkit.functional.arrays import Array


class Hypothesis(NamedTuple):
    """One output of a model.

    `log_prob` is the sum over its tokens, end mark included, of what the model gives each as the next one, whatever
    was excluded or reshaped in choosing it: teacher forcing finds the same number.
    """

    ids: list[int]  # without begin and end marks
    score: float  # log_prob / length_penalty
    log_prob: float
    finished: bool  # False where the length limit, not the model, put the end mark there


def length_penalty(length: Array | int, power: float) -> Array | float:
    """length ** power, the divisor of a log-probability (Hugging Face's definition); the end mark counts as a token.

    0 compares log-probabilities, which favours short outputs; 1 compares averages per token.
    """
    return length**power

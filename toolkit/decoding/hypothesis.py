"""The outputs of decoding, how hypotheses of different lengths compare, and an observer's view of a running search."""

import math
from typing import NamedTuple

from toolkit.display import short_repr
from toolkit.functional.arrays import Array


class Hypothesis(NamedTuple):
    """One output of a model.

    `log_prob` is the sum over its tokens, EOS included, of the model's own log-probability of each, whatever was
    excluded, forced or reshaped in choosing it: teacher forcing finds the same number. Where the length limit cut an
    output short, `forced_eos` of `GenerationConfig` says how its EOS counts. `score` is log_prob divided by the length
    penalty; beam search with a repetition penalty ranks by, and reports, the penalised sum divided by it.
    """

    ids: list[int]  # without BOS and EOS
    score: float  # ranks the outputs of one text
    log_prob: float
    finished: bool  # False where the length limit ended it, not the model or a stop string
    token_log_probs: list[float]  # of ids, then of EOS where there is one; their sum is log_prob

    __repr__ = short_repr


def hypothesis_of(ids: list[int], token_log_probs: list[float], power: float, finished: bool) -> Hypothesis:
    """Sum up the log-probabilities of an output. `fsum` rounds once, so that the sum is the same in every batch."""
    log_prob = math.fsum(token_log_probs)
    return Hypothesis(ids, log_prob / length_penalty(len(token_log_probs), power), log_prob, finished, token_log_probs)


def length_penalty(length: Array | int, power: float) -> Array | float:
    """Compute length ** power, the divisor of a log-probability (Hugging Face's definition); EOS counts as a token.

    0 compares log-probabilities, which favours short outputs; 1 compares averages per token.
    """
    return length**power


class Ranking(NamedTuple):
    """One step of beam search: the best continuations of each of B sentences, and their fates.

    A continuation is a beam of its sentence, by its place in the step before, and a token. The C = 2K best are ranked;
    `kept` are those that go on if the sentence does, in the places that they take. Scores of -inf fill empty places.
    """

    sentences: Array  # (B,)
    beams: Array  # (B, C)
    tokens: Array  # (B, C)
    scores: Array  # (B, C) sums of log-probabilities, after the logits processors
    log_probs: Array  # (B, C) the model's own sums
    ended: Array  # (B, K) which of the first K are complete
    kept_beams: Array  # (B, K)
    kept_tokens: Array  # (B, K)
    done: Array  # (B,) True where the search is over for the sentence: nothing is kept then


class Observer:
    """Receives the steps of the real searches, by these methods in this order; here each does nothing.

    Without an observer nothing is computed for it. N rows are sequences that are being written; with beams, row b·K + k
    is beam k of sentence b. Arrays are valid until the method returns, and must not be changed: copy what you keep.
    """

    __repr__ = short_repr

    def scored(self, owners: Array, logits: Array, normalizers: Array) -> None:
        """Receive the model's own scores of the next token: logits (N, V), log Σ exp of each row (N,).

        owners: the sequences (N,), or the sentences (B,) of beams.
        """

    def constrained(self, logits: Array, normalizers: Array) -> None:
        """Receive the same after processors and constraints: -inf for a token that is forbidden.

        Beam search adds logits - normalizers to the score of a beam.
        """

    def weighed(self, stage: str, tokens: Array | None, weights: Array) -> None:
        """Receive, of sampling, the weights of tokens (N, C) after a stage (None: of all in order); 0 where excluded.

        stage: "temperature", then those of "top_k", "top_p" and "min_p" that are in force. A probability is a weight
        divided by the sum of its row.
        """

    def chosen(self, tokens: Array) -> None:
        """Receive the tokens that greedy search or sampling writes, (N,)."""

    def ranked(self, ranking: Ranking) -> None:
        """Receive the ranking of a step of beam search."""

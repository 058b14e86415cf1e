"""What decoding shows of its way to whoever wants to explain it; without an observer nothing is computed for it."""

from typing import NamedTuple

from toolkit.functional.arrays import Array


class Ranking(NamedTuple):
    """One step of beam search: the best continuations of each of B sentences, and what becomes of them.

    A continuation is a beam of its sentence, by its place in the step before, and a token. The C = 2K best are ranked;
    `kept` are those that go on if the sentence does, in the places that they take. Scores of -inf fill up what is less.
    """

    sentences: Array  # (B,)
    beams: Array  # (B, C)
    tokens: Array  # (B, C)
    scores: Array  # (B, C) sums of log-probabilities, as processors have reshaped them
    log_probs: Array  # (B, C) the model's own sums
    ended: Array  # (B, K) which of the first K are complete
    kept_beams: Array  # (B, K)
    kept_tokens: Array  # (B, K)
    done: Array  # (B,) whether the search is over for the sentence: nothing is kept then


class Observer:
    """Told by the real searches what they do, in the order of these methods, at every step; here each does nothing.

    N rows are sequences that are being written; with beams, row b·K + k is beam k of sentence b. Arrays are only good
    until the method returns, and must not be changed: what is to be kept is copied.
    """

    def scored(self, owners: Array, logits: Array, normalizers: Array) -> None:
        """The model's own scores of the next token: logits (N, V), log Σ exp of each row (N,).

        owners: the sequences (N,), or the sentences (B,) of beams.
        """

    def constrained(self, logits: Array, normalizers: Array) -> None:
        """The same after processors and constraints: -inf for what may not be written.

        Beam search adds logits - normalizers to the score of a beam.
        """

    def weighed(self, stage: str, tokens: Array | None, weights: Array) -> None:
        """Sampling: the weights of tokens (N, C), all of them in order for None, after a stage; 0 where excluded.

        stage: "temperature", then those of "top_k", "top_p" and "min_p" that are in force. A probability is a weight
        divided by the sum of its row.
        """

    def chosen(self, tokens: Array) -> None:
        """Greedy search and sampling: the tokens that are written, (N,)."""

    def ranked(self, ranking: Ranking) -> None:
        """Beam search: what is kept, what is dropped and what has ended."""

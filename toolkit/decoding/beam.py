"""Beam search: the K best unfinished hypotheses of every sentence grow by a token a step.

A hypothesis that ends moves to a list of its own and leaves its place to the next best; each step therefore looks at
2K continuations, at most K of which can be end marks.
"""

from dataclasses import dataclass

import numpy as np

from toolkit.decoding.beam_state import Finished, keep_in_place, settled
from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.distribution import best_continuations, forbid_control_tokens, force_end, log_sum_exp
from toolkit.decoding.hypothesis import Hypothesis, length_penalty
from toolkit.decoding.session import Session, fill_holes
from toolkit.functional.arrays import Array
from toolkit.tokenization.special import BOS, EOS


@dataclass
class _Beams:
    """W hypotheses for each of B sentences; one with score -inf is an empty place."""

    sentences: Array  # (B,) the sentence's number in the batch
    scores: Array  # (B, W) sums of log-probabilities
    written: Array  # (B, W, T) ids, of which the first `step` are set
    step: int = 0

    @property
    def last(self) -> Array:
        """(B·W,) the tokens to read next."""
        if self.step == 0:
            return np.full(self.scores.size, BOS)
        return self.written[:, :, self.step - 1].reshape(-1)


@dataclass
class _Continuations:
    """The 2K best ways to continue the beams of each sentence, best first; all arrays (B, 2K)."""

    scores: Array
    beams: Array
    tokens: Array

    def unfinished(self, count: int) -> "_Continuations":
        """The first `count` that are not ended, with those of the same beam in its place where possible."""
        order = np.argsort(self.tokens == EOS, axis=1, kind="stable")[:, :count]
        order = np.take_along_axis(order, keep_in_place(np.take_along_axis(self.beams, order, 1)), 1)
        return _Continuations(*(np.take_along_axis(x, order, 1) for x in (self.scores, self.beams, self.tokens)))


def beam_search(session: Session, limits: Array, config: GenerationConfig) -> list[list[Hypothesis]]:
    """The best `num_return_sequences` hypotheses found for each sentence, best first (fewer where fewer exist).

    limits: (B,) tokens that each sentence may have, end mark included; at the limit every beam is ended. It begins
    with one beam, because K equal ones would find K times the same.
    """
    count = len(limits)
    finished = Finished(count, config.num_return_sequences)
    written = np.zeros((count, 1, limits.max(initial=0)), np.int64)
    beams = _Beams(np.arange(count), np.zeros((count, 1)), written)
    while len(beams.sentences):
        at_limit = limits[beams.sentences] == beams.step + 1
        continuations = _continue(session.logits(beams.last), beams, at_limit, 2 * config.num_beams)
        ended = _collect(continuations, beams, limits, config, finished)
        live = continuations.unfinished(config.num_beams)
        done = settled(
            live.scores.max(axis=1),
            finished.thresholds[beams.sentences],
            beams.step + 2,
            limits[beams.sentences],
            config.length_penalty,
        )
        # A single beam that has ended is greedy search, and its second thoughts are not followed.
        done |= at_limit | (ended[:, 0] if config.num_beams == 1 else False)
        beams = _grow(session, beams, live, fill_holes(~done))
    return finished.hypotheses


def _continue(logits: Array, beams: _Beams, at_limit: Array, count: int) -> _Continuations:
    """Rank the permitted continuations of all beams of a sentence together.  Shapes: logits (B·W, V)."""
    normalizers = log_sum_exp(logits).reshape(beams.scores.shape)
    forbid_control_tokens(logits)
    if at_limit.any():
        force_end(logits, np.repeat(at_limit, beams.scores.shape[1]))
    return _Continuations(*best_continuations(logits, beams.scores - normalizers, count))


def _collect(
    continuations: _Continuations, beams: _Beams, limits: Array, config: GenerationConfig, finished: Finished
) -> Array:
    """Move ended hypotheses to `finished`; returns which of the first K ended, (B, K).

    An end mark below rank K would have been pruned had it been another token, so it does not count (as in fairseq and
    Hugging Face).
    """
    width, length = config.num_beams, beams.step + 1
    log_probs = continuations.scores[:, :width]
    ended = (continuations.tokens[:, :width] == EOS) & (log_probs > -np.inf)
    scores = log_probs / length_penalty(length, config.length_penalty)
    better = ended & (scores > finished.thresholds[beams.sentences][:, None])
    for row, rank in zip(*np.nonzero(better), strict=True):
        sentence = beams.sentences[row]
        ids = beams.written[row, continuations.beams[row, rank], : beams.step].tolist()
        score, log_prob = float(scores[row, rank]), float(log_probs[row, rank])
        finished.add(sentence, Hypothesis(ids, score, log_prob, bool(length < limits[sentence])))
    return ended


def _grow(session: Session, beams: _Beams, live: _Continuations, order: Array) -> _Beams:
    """Replace the beams of the sentences in `order` by their continuations; the other sentences are dropped."""
    width = beams.scores.shape[1]
    scores, parents, tokens = (x[order] for x in (live.scores, live.beams, live.tokens))
    if len(order):
        session.select(order, (order[:, None] * width + parents).reshape(-1))
    written = beams.written[order[:, None], parents]
    written[:, :, beams.step] = tokens
    return _Beams(beams.sentences[order], scores, written, beams.step + 1)

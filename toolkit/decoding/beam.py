"""Beam search: the K best unfinished hypotheses of every sentence grow by a token a step.

A hypothesis that ends moves to a list of its own and leaves its place to the next best; each step therefore looks at
2K continuations, at most K of which can be end marks.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from toolkit.decoding.beam_state import Finished, keep_in_place, search_is_over
from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.constraints import Constraints
from toolkit.decoding.distribution import best_continuations, log_sum_exp
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
    sums: Array  # (B, W, T) what `scores` was after each of them
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


def beam_search(session: Session, constraints: Constraints, config: GenerationConfig) -> list[list[Hypothesis]]:
    """The best `num_return_sequences` hypotheses found for each sentence, best first (fewer where fewer exist).

    It begins with one beam, because K equal ones would find K times the same, and as long as a prefix lasts there is
    no other.
    """
    count, limits = len(constraints.limits), constraints.limits
    # Hugging Face's rules compare with the worst of as many finished hypotheses as there are beams.
    finished = Finished(count, config.num_return_sequences if config.early_stopping == "settled" else config.num_beams)
    shape = (count, 1, constraints.longest)
    beams = _Beams(np.arange(count), np.zeros((count, 1)), np.zeros(shape, np.int64), np.zeros(shape))
    while len(beams.sentences):
        continuations, at_limit = _continue(session.logits(beams.last), beams, constraints, 2 * config.num_beams)
        ended = _collect(continuations, beams, constraints, at_limit, config, finished)
        live = continuations.unfinished(config.num_beams)
        thresholds = finished.thresholds[beams.sentences]
        done = search_is_over(config, live.scores.max(axis=1), thresholds, beams.step + 1, limits[beams.sentences])
        # A single beam that has ended is greedy search, and its second thoughts are not followed.
        done |= at_limit | (ended[:, 0] if config.num_beams == 1 else False)
        beams = _grow(session, beams, live, fill_holes(~done))
    return [hypotheses[: config.num_return_sequences] for hypotheses in finished.hypotheses]


def _continue(logits: Array, beams: _Beams, constraints: Constraints, count: int) -> tuple[_Continuations, Array]:
    """Rank the permitted continuations of all beams of a sentence together; and which sentences are at their limit.

    Shapes: logits (B·W, V).
    """
    normalizers = log_sum_exp(logits)
    at_limit = constraints.impose(logits, normalizers, beams.sentences, beams.step)
    scores = beams.scores - normalizers.reshape(beams.scores.shape)
    return _Continuations(*best_continuations(logits, scores, count)), at_limit


def _collect(
    continuations: _Continuations,
    beams: _Beams,
    constraints: Constraints,
    at_limit: Array,
    config: GenerationConfig,
    finished: Finished,
) -> Array:
    """Move ended hypotheses to `finished`; returns which of the first K ended, (B, K).

    An end mark below rank K would have been pruned had it been another token, so it does not count (as in fairseq and
    Hugging Face).
    """
    width, length = config.num_beams, beams.step + 1
    log_probs = continuations.scores[:, :width]
    ended = ((continuations.tokens[:, :width] == EOS) | at_limit[:, None]) & (log_probs > -np.inf)
    scores = log_probs / length_penalty(length, config.length_penalty)
    better = ended & (scores > finished.thresholds[beams.sentences][:, None])
    for row, rank in zip(*np.nonzero(better), strict=True):
        sentence, beam, last = beams.sentences[row], continuations.beams[row, rank], continuations.tokens[row, rank]
        ids = beams.written[row, beam, : beams.step].tolist()
        ids += [] if last == EOS else [int(last)]
        score, log_prob = float(scores[row, rank]), float(log_probs[row, rank])
        sums = [0.0, *beams.sums[row, beam, : beams.step].tolist(), log_prob]
        by_itself = bool(constraints.ended_by_itself(sentence, length, last))
        token_log_probs = [after - before for before, after in pairwise(sums)]
        finished.add(sentence, Hypothesis(ids, score, log_prob, by_itself, token_log_probs))
    return ended


def _grow(session: Session, beams: _Beams, live: _Continuations, order: Array) -> _Beams:
    """Replace the beams of the sentences in `order` by their continuations; the other sentences are dropped."""
    width = beams.scores.shape[1]
    scores, parents, tokens = (x[order] for x in (live.scores, live.beams, live.tokens))
    if len(order):
        session.select(order, (order[:, None] * width + parents).reshape(-1))
    written, sums = (x[order[:, None], parents] for x in (beams.written, beams.sums))
    written[:, :, beams.step] = tokens
    sums[:, :, beams.step] = scores
    return _Beams(beams.sentences[order], scores, written, sums, beams.step + 1)

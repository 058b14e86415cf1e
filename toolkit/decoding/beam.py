"""Beam search: the K best unfinished hypotheses of every sentence grow by a token a step.

A hypothesis that ends moves to a list of its own and leaves its place to the next best; each step therefore looks at
2K continuations, at most K of which can be end marks.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from toolkit.decoding.beam_state import Finished, search_is_over
from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.constraints import Constraints
from toolkit.decoding.distribution import best_continuations, log_sum_exp
from toolkit.decoding.hypothesis import Hypothesis, length_penalty
from toolkit.decoding.observer import Observer, Ranking
from toolkit.decoding.session import Session, fill_holes
from toolkit.functional.arrays import Array


@dataclass
class _Beams:
    """W hypotheses for each of B sentences; one with score -inf is an empty place."""

    sentences: Array  # (B,) the sentence's number in the batch
    last: Array  # (B·W,) the tokens to read next
    scores: Array  # (B, W) sums of log-probabilities, as processors have reshaped them
    written: Array  # (B, W, T) ids
    sums: Array  # (B, W, T) the model's own log-probability of the output up to each of them

    @property
    def step(self) -> int:
        """T, how many tokens each has."""
        return self.written.shape[2]

    @property
    def log_probs(self) -> Array:
        """(B, W) the model's own log-probabilities so far."""
        return self.sums[:, :, -1] if self.step else np.zeros(self.scores.shape)


@dataclass
class _Continuations:
    """The 2K best ways to continue the beams of each sentence, best first; all arrays (B, 2K)."""

    scores: Array
    beams: Array
    tokens: Array
    log_probs: Array  # the model's own, of the whole output

    def unfinished(self, count: int, end: int) -> "_Continuations":
        """The first `count` that are not ended."""
        order = np.argsort(self.tokens == end, axis=1, kind="stable")[:, :count]
        rows = np.arange(len(order))[:, None]
        return _Continuations(*(x[rows, order] for x in vars(self).values()))


def beam_search(
    session: Session, constraints: Constraints, config: GenerationConfig, observer: Observer | None = None
) -> list[list[Hypothesis]]:
    """The best `num_return_sequences` hypotheses found for each sentence, best first (fewer where fewer exist).

    It begins with one beam, because K equal ones would find K times the same, and as long as a prefix lasts there is
    no other. Hypotheses are ranked by what processors make of their log-probabilities, and `score` says by what;
    `log_prob` remains the model's own.
    """
    count, limits = len(constraints.limits), constraints.limits
    # Hugging Face's rules compare with the worst of as many finished hypotheses as there are beams.
    finished = Finished(count, config.num_return_sequences if config.early_stopping == "settled" else config.num_beams)
    nothing = np.zeros((count, 1, 0))
    beams = _Beams(np.arange(count), session.begin, np.zeros((count, 1)), nothing.astype(np.int64), nothing)
    while len(beams.sentences):
        logits, most = session.logits(beams.last), 2 * config.num_beams
        continuations, at_limit = _continue(logits, beams, constraints, most, observer)
        ended = _collect(continuations, beams, constraints, at_limit, config, finished)
        live = continuations.unfinished(config.num_beams, constraints.end)
        thresholds = finished.thresholds[beams.sentences]
        done = search_is_over(config, live.scores.max(axis=1), thresholds, beams.step + 1, limits[beams.sentences])
        # A single beam that has ended is greedy search, and its second thoughts are not followed.
        done |= at_limit | (ended[:, 0] if config.num_beams == 1 else False)
        if observer is not None:
            observer.ranked(_ranking(beams, continuations, ended, live, done))
        beams = _grow(session, beams, live, fill_holes(~done))
    return [hypotheses[: config.num_return_sequences] for hypotheses in finished.hypotheses]


def _ranking(beams: _Beams, found: _Continuations, ended: Array, live: _Continuations, done: Array) -> Ranking:
    """What an observer is shown of a step."""
    every = (found.beams, found.tokens, found.scores, found.log_probs)
    return Ranking(beams.sentences, *every, ended, live.beams, live.tokens, done)


def _continue(
    logits: Array, beams: _Beams, constraints: Constraints, count: int, observer: Observer | None = None
) -> tuple[_Continuations, Array]:
    """Rank the permitted continuations of all beams of a sentence together; and which sentences are at their limit.

    Shapes: logits (B·W, V).
    """
    normalizers, written = log_sum_exp(logits), None
    if observer is not None:
        observer.scored(beams.sentences, logits, normalizers)
    if constraints.reshape:  # log-probabilities, not logits
        logits -= normalizers[:, None]
        normalizers[:] = 0
        written = beams.written.reshape(len(logits), beams.step)
    own, at_limit = constraints.impose(logits, normalizers, beams.sentences, beams.step, written)
    if observer is not None:
        observer.constrained(logits, normalizers)
    normalizers = normalizers.reshape(beams.scores.shape)
    sums, parents, tokens = best_continuations(logits, beams.scores - normalizers, count)
    log_probs = sums
    if constraints.reshape:
        rows = np.arange(len(sums))[:, None]
        log_probs = own.reshape(*beams.scores.shape, -1)[rows, parents, tokens]
        log_probs += (beams.log_probs - normalizers)[rows, parents]
    return _Continuations(sums, parents, tokens, log_probs), at_limit


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
    ranked = continuations.scores[:, :width]
    ended = ((continuations.tokens[:, :width] == constraints.end) | at_limit[:, None]) & (ranked > -np.inf)
    scores = ranked / length_penalty(length, config.length_penalty)
    better = ended & (scores > finished.thresholds[beams.sentences][:, None])
    for row, rank in zip(*np.nonzero(better), strict=True):
        sentence, beam, last = beams.sentences[row], continuations.beams[row, rank], continuations.tokens[row, rank]
        ids = beams.written[row, beam].tolist()
        ids += [] if last == constraints.end else [int(last)]
        score, log_prob = float(scores[row, rank]), float(continuations.log_probs[row, rank])
        sums = [0.0, *beams.sums[row, beam].tolist(), log_prob]
        by_itself = bool(constraints.ended_by_itself(sentence, length, last))
        token_log_probs = [after - before for before, after in pairwise(sums)]
        finished.add(sentence, Hypothesis(ids, score, log_prob, by_itself, token_log_probs))
    return ended


def _grow(session: Session, beams: _Beams, live: _Continuations, order: Array) -> _Beams:
    """Replace the beams of the sentences in `order` by their continuations; the other sentences are dropped."""
    width = beams.scores.shape[1]
    scores, parents, tokens, log_probs = (x[order] for x in vars(live).values())
    if len(order):
        session.select(order, (order[:, None] * width + parents).reshape(-1))
    written, sums = (
        np.concatenate((x[order[:, None], parents], new[:, :, None]), axis=2)
        for x, new in ((beams.written, tokens), (beams.sums, log_probs))
    )
    return _Beams(beams.sentences[order], tokens.reshape(-1), scores, written, sums)

"""Beam search: the K best unfinished hypotheses of every sentence grow by a token a step.

A hypothesis that ends moves to a list of its own and leaves its place to the next best; each step therefore looks at
2K continuations, at most K of which can be EOS.
"""

import bisect
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.hypothesis import Hypothesis, Observer, Ranking, length_penalty
from toolkit.decoding.logits_processors import Constraints
from toolkit.decoding.sampling import best_continuations, log_sum_exp
from toolkit.decoding.state import DecoderState, fill_holes
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


def search_is_over(config: GenerationConfig, live: Array, thresholds: Array, written: int, limits: Array) -> Array:
    """Mark the sentences that are done by the rule `early_stopping`; unfinished hypotheses have `written` tokens.

        done = best live log-probability / length ** power ≤ worst finished score that counts

    Log-probabilities only fall, so the best score that a hypothesis can reach is its present log-probability at the
    most favourable length: the limit where the penalty grows with length, otherwise the shortest still possible.
    "settled" takes that length, Hugging Face's rules the length that each names.
    Shapes: live (B,) best unfinished log-probabilities, thresholds and limits (B,) -> (B,) of bool.
    """
    rule, power = config.early_stopping, config.length_penalty
    if rule is True:
        return (thresholds > -np.inf) | (live == -np.inf)
    lengths = limits if power > 0 and rule is not False else written + (rule == "settled")
    return live / length_penalty(np.asarray(lengths, float), power) <= thresholds


@dataclass
class _Beams:
    """W hypotheses for each of B sentences; one with score -inf is an empty place."""

    sentences: Array  # (B,) the sentence's number in the batch
    last: Array  # (B·W,) the tokens to read next
    scores: Array  # (B, W) sums of log-probabilities, after the logits processors
    written: Array  # (B, W, T) ids
    sums: Array  # (B, W, T) the model's own log-probability of the output up to each token

    @property
    def step(self) -> int:
        return self.written.shape[2]

    @property
    def log_probs(self) -> Array:
        return self.sums[:, :, -1] if self.step else np.zeros(self.scores.shape)


@dataclass
class _Continuations:
    """The 2K best ways to continue the beams of each sentence, best first; all arrays (B, 2K)."""

    scores: Array
    beams: Array
    tokens: Array
    log_probs: Array  # the model's own, of the whole output

    def unfinished(self, count: int, end: int) -> "_Continuations":
        """Return the first `count` that do not end."""
        order = np.argsort(self.tokens == end, axis=1, kind="stable")[:, :count]
        rows = np.arange(len(order))[:, None]
        return _Continuations(*(x[rows, order] for x in vars(self).values()))


def beam_search(
    state: DecoderState, constraints: Constraints, config: GenerationConfig, observer: Observer | None = None
) -> list[list[Hypothesis]]:
    """Find the best `num_return_sequences` hypotheses for each sentence, best first (fewer where fewer exist).

    The search begins with one beam, because K equal ones would find K times the same, and as long as a prefix lasts
    there is no other. Hypotheses are ranked by their log-probabilities after the logits processors, which `score`
    reports; `log_prob` remains the model's own.
    """
    count, limits = len(constraints.limits), constraints.limits
    # Hugging Face's rules compare with the worst of as many finished hypotheses as there are beams.
    finished = Finished(count, config.num_return_sequences if config.early_stopping == "settled" else config.num_beams)
    nothing = np.zeros((count, 1, 0))
    beams = _Beams(np.arange(count), state.begin, np.zeros((count, 1)), nothing.astype(np.int64), nothing)
    while len(beams.sentences):
        logits, most = state.logits(beams.last), 2 * config.num_beams
        continuations, at_limit = _continue(logits, beams, constraints, most, observer)
        ended = _collect(continuations, beams, constraints, at_limit, config, finished)
        live = continuations.unfinished(config.num_beams, constraints.end)
        thresholds = finished.thresholds[beams.sentences]
        done = search_is_over(config, live.scores.max(axis=1), thresholds, beams.step + 1, limits[beams.sentences])
        # A single beam that has ended is greedy search, and its second thoughts are not followed.
        done |= at_limit | (ended[:, 0] if config.num_beams == 1 else False)
        if observer is not None:
            ranked = (continuations.beams, continuations.tokens, continuations.scores, continuations.log_probs)
            observer.ranked(Ranking(beams.sentences, *ranked, ended, live.beams, live.tokens, done))
        beams = _grow(state, beams, live, fill_holes(~done))
    return [hypotheses[: config.num_return_sequences] for hypotheses in finished.hypotheses]


def _continue(
    logits: Array, beams: _Beams, constraints: Constraints, count: int, observer: Observer | None = None
) -> tuple[_Continuations, Array]:
    """Rank the permitted continuations of logits (B·W, V); also mark the sentences at their limit."""
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
    """Move ended hypotheses to `finished`; return which of the first K ended, (B, K).

    EOS below rank K does not count: another token would have been pruned there (as in fairseq and Hugging Face).
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


def _grow(state: DecoderState, beams: _Beams, live: _Continuations, order: Array) -> _Beams:
    """Continue the beams of the sentences in `order`, and drop the other sentences."""
    width = beams.scores.shape[1]
    scores, parents, tokens, log_probs = (x[order] for x in vars(live).values())
    if len(order):
        state.select(order, (order[:, None] * width + parents).reshape(-1))
    written, sums = (
        np.concatenate((x[order[:, None], parents], new[:, :, None]), axis=2)
        for x, new in ((beams.written, tokens), (beams.sums, log_probs))
    )
    return _Beams(beams.sentences[order], tokens.reshape(-1), scores, written, sums)

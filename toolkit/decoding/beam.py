"""Beam search: the K best unfinished hypotheses of every sentence grow by a token a step.

A hypothesis that ends moves to a list of its own and leaves its place to the next best; each step therefore looks at
2K continuations, at most K of which can be EOS.
"""

import bisect
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Protocol

import numpy as np

from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.hypothesis import Hypothesis, Observer, Ranking, length_penalty
from toolkit.decoding.logits_processors import Constraints
from toolkit.decoding.sampling import best_continuations, log_sum_exp
from toolkit.decoding.state import DecoderState, fill_holes
from toolkit.functional.arrays import Array

# One of the 2K best ways to continue the beams of a sentence: the sum of its log-probabilities after the logits
# processors, the beam's place in its sentence, a token, and the model's own log-probability of the whole output.
_Continuation = tuple[float, int, int, float]
_EMPTY: _Continuation = (-math.inf, 0, 0, 0.0)


class Finished:
    """The best complete hypotheses of every sentence, at most `wanted` of each, best first."""

    def __init__(self, sentences: int, wanted: int):
        self.wanted = wanted
        self.hypotheses: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.thresholds = [-math.inf] * sentences  # a new hypothesis counts if its score is above

    def arrange(self, kept: list[int], more: int) -> None:
        """Keep what was found for some sentences, in this order, and begin so many more."""
        self.hypotheses = [self.hypotheses[sentence] for sentence in kept] + [[] for _ in range(more)]
        self.thresholds = [self.thresholds[sentence] for sentence in kept] + [-math.inf] * more

    def add(self, sentence: int, hypothesis: Hypothesis) -> None:
        best = self.hypotheses[sentence]
        bisect.insort(best, hypothesis, key=lambda each: -each.score)
        del best[self.wanted :]
        if len(best) == self.wanted:
            self.thresholds[sentence] = best[-1].score


def search_is_over(config: GenerationConfig, live: float, threshold: float, written: int, limit: int) -> bool:
    """Tell if a sentence is done by the rule `early_stopping`; unfinished hypotheses have `written` tokens.

        done = best live log-probability / length ** power ≤ worst finished score that counts

    Log-probabilities only fall, so the best score that a hypothesis can reach is its present log-probability at the
    most favourable length: the limit where the penalty grows with length, otherwise the shortest still possible.
    "settled" takes that length, Hugging Face's rules the length that each names.
    live: the best unfinished log-probability. threshold: the worst finished score that counts.
    """
    rule, power = config.early_stopping, config.length_penalty
    if rule is True:
        return threshold > -math.inf or live == -math.inf
    length = limit if power > 0 and rule is not False else written + (rule == "settled")
    return live / length_penalty(length, power) <= threshold


def beam_search(
    state: DecoderState, constraints: Constraints, config: GenerationConfig, observer: Observer | None = None
) -> list[list[Hypothesis]]:
    """Find the best `num_return_sequences` hypotheses for each sentence, best first (fewer where fewer exist).

    The search begins with one beam, because K equal ones would find K times the same, and as long as a prefix lasts
    there is no other: other places are empty. Hypotheses are ranked by their log-probabilities after the logits
    processors, which `score` reports; `log_prob` remains the model's own.
    """
    # Where it costs little, all beams are there from the beginning: all steps are then recorded as one.
    count = len(constraints.limits)
    each, width = np.arange(count), 1 if state.leaving_pays(count * (config.num_beams - 1)) else config.num_beams
    state.select(each, each.repeat(width))
    search = BeamSearch(state, constraints, config, state.begin.repeat(width), observer)
    while not all(search.done):
        search.advance(state.logits(search.last))
    return [hypotheses[: config.num_return_sequences] for hypotheses in search.finished.hypotheses]


def _first_scores(count: int, width: int) -> Array:
    scores = np.full((count, width), -math.inf)
    scores[:, 0] = 0
    return scores


class Places(Protocol):
    """Take what a search tells of its sentences and beams: a `DecoderState`, or the places of a continuous batch."""

    def select(self, texts: Array, sequences: Array) -> None: ...

    def leaving_pays(self, unused: int) -> bool: ...


class BeamSearch:
    """W hypotheses for each of B sentences; one with score -inf is an empty place.

    A sentence that is done has empty places alone, until it leaves the state. The numbers of a step are few for every
    sentence: Python's own are faster than arrays of them.

    state: is told which sentences and beams go on, and decides when those that are done leave it. last: the tokens that
    are read first; there may be fewer for each sentence than `num_beams` at first.
    """

    def __init__(
        self,
        state: "Places",
        constraints: Constraints,
        config: GenerationConfig,
        last: Array,
        observer: Observer | None = None,
    ):
        count = len(constraints.limits)
        self._state, self._constraints, self._config, self._observer = state, constraints, config, observer
        # Hugging Face's rules compare with the worst of as many finished hypotheses as there are beams.
        settled = config.early_stopping == "settled"
        self.finished = Finished(count, config.num_return_sequences if settled else config.num_beams)
        self._sentences, self.done = np.arange(count), [False] * count
        self.last, self._scores = last, _first_scores(count, len(last) // max(count, 1))
        # Of every step so far, for each hypothesis then: the row that it continued, its token, and the model's own
        # log-probability of it up to there. From these an output is read backwards once it is complete.
        self._history: list[tuple[list[int], list[int], list[float]]] = []
        self._begun = [0] * count  # the number of steps before the first of each sentence
        self._written = np.empty((len(last), 0), np.int64)  # (B·W, T), for logits processors

    def join(self, constraints: Constraints, last: Array) -> None:
        """Begin more sentences, with the next step.

        constraints: of those that go on, in order, and then of the new ones, which are counted so from now on. last:
        the tokens that the new ones read first.
        """
        width = self._scores.shape[1]
        count = len(last) // width
        self.finished.arrange(self._sentences.tolist(), count)
        self._constraints, self._sentences = constraints, np.arange(len(constraints.limits))
        self.done += [False] * count
        self.last, self._scores = (
            np.concatenate((self.last, last)),
            np.vstack((self._scores, _first_scores(count, width))),
        )
        oldest = min(self._begun, default=len(self._history))
        del self._history[:oldest]
        self._begun = [begun - oldest for begun in self._begun] + [len(self._history)] * count

    def leave(self, rows: list[int]) -> None:
        """Go on with some sentences alone, by their numbers among those that go on now, in ascending order."""
        width = self._scores.shape[1]
        self._sentences, self._scores = self._sentences[rows], self._scores[rows]
        self.done, self._begun = ([each[row] for row in rows] for each in (self.done, self._begun))
        beams = [row * width + beam for row in rows for beam in range(width)]
        self.last = self.last[beams]
        if self._history:  # where those that have not begun are not
            self._history[-1] = tuple([part[beam] for beam in beams if beam < len(part)] for part in self._history[-1])

    def advance(self, logits: Array) -> list[tuple[int, list[Hypothesis]]]:
        """Continue the beams of every sentence by a token; return the sentences that are done, by their numbers among
        those that went on, and what was found for them.

        logits: (B·W, V) of the next token after those in `last`, which are changed.
        """
        ranked, at_limit = self._rank(logits)
        rows = enumerate(zip(at_limit.tolist(), *(part.tolist() for part in ranked), strict=True))
        kept = [self._sort(row, zip(*best, strict=True), limited) for row, (limited, *best) in rows]
        if self._observer is not None:
            self._tell(self._observer, ranked, at_limit, kept)
        done, order = [row for row, each in enumerate(self.done) if each], np.arange(len(kept))
        if done and len(done) < len(kept) and self._state.leaving_pays(len(done) * self._config.num_beams):
            order = fill_holes(~np.array(self.done))
        found = [
            (row, self.finished.hypotheses[self._sentences[row]][: self._config.num_return_sequences]) for row in done
        ]
        if len(done) < len(kept):
            self._go_on(kept, order)
        return found

    def _rank(self, logits: Array) -> tuple[tuple[Array, Array, Array, Array], Array]:
        """Rank the permitted continuations of logits (B·W, V): scores, beams, tokens and log-probabilities of the 2K
        best of each sentence, best first, (B, 2K) each. Also mark the sentences at their limit, (B,)."""
        constraints, scores, step, written = self._constraints, self._scores, len(self._history), None
        normalizers = log_sum_exp(logits)
        if self._observer is not None:
            self._observer.scored(self._sentences, logits, normalizers)
        if constraints.reshape:  # log-probabilities, not logits
            logits -= normalizers[:, None]
            normalizers[:] = 0
            written = self._written
        if any(self._begun):
            step = step - np.array(self._begun)
        own, at_limit = constraints.impose(logits, normalizers, self._sentences, step, written)
        if self._observer is not None:
            self._observer.constrained(logits, normalizers)
        normalizers = normalizers.reshape(scores.shape)
        sums, parents, tokens = best_continuations(logits, scores - normalizers, 2 * self._config.num_beams)
        log_probs = sums
        if constraints.reshape:
            rows = np.arange(len(sums))[:, None]
            log_probs = own.reshape(*scores.shape, -1)[rows, parents, tokens]
            before = np.array(self._history[-1][2]).reshape(scores.shape) if step else 0
            log_probs += (before - normalizers)[rows, parents]
        return (sums, parents, tokens, log_probs), at_limit

    def _sort(self, row: int, ranked: Iterable[_Continuation], at_limit: bool) -> list[_Continuation]:
        """Collect the continuations of a sentence that are complete, and return the best K others.

        EOS below rank K does not count: another token would have been pruned there (as in fairseq and Hugging Face).
        """
        width, end, step = self._config.num_beams, self._constraints.end, len(self._history) - self._begun[row]
        live: list[_Continuation] = []
        best_ended = False
        for rank, each in enumerate(ranked):
            ends = each[2] == end
            if rank < width and (ends or at_limit) and each[0] > -math.inf:
                self._finish(row, each)
                best_ended |= rank == 0
            if not ends and len(live) < width:
                live.append(each)
        live += [_EMPTY] * (width - len(live))
        threshold, limit = (x[self._sentences[row]] for x in (self.finished.thresholds, self._constraints.limits))
        over = at_limit or search_is_over(self._config, live[0][0], threshold, step + 1, int(limit))
        # A single beam that has ended is greedy search, and its second thoughts are not followed.
        self.done[row] |= over or (best_ended and width == 1)
        return live

    def _finish(self, row: int, last: _Continuation) -> None:
        """Add a complete hypothesis to those that are finished, if it is good enough."""
        score, beam, token, log_prob = last
        sentence, constraints = int(self._sentences[row]), self._constraints
        own = self._history[self._begun[row] :]
        length = len(own) + 1
        score /= length_penalty(length, self._config.length_penalty)
        if score <= self.finished.thresholds[sentence]:
            return
        ids, sums = [] if token == constraints.end else [token], [log_prob]
        place = row * self._scores.shape[1] + beam
        for rows, tokens, log_probs in reversed(own):
            ids.append(tokens[place])
            sums.append(log_probs[place])
            place = rows[place]
        by_itself = bool(constraints.ended_by_itself(sentence, length, token))
        token_log_probs = [after - before for before, after in pairwise([0.0, *reversed(sums)])]
        self.finished.add(sentence, Hypothesis(ids[::-1], score, log_prob, by_itself, token_log_probs))

    def _go_on(self, kept: list[list[_Continuation]], order: Array) -> None:
        """Continue with what was kept of the sentences in `order`, and drop the other sentences."""
        before, width = self._scores.shape[1], self._config.num_beams
        rows, scores, tokens, log_probs = [], [], [], []
        for row in order.tolist():
            for score, beam, token, log_prob in [_EMPTY] * width if self.done[row] else kept[row]:
                rows.append(row * before + beam)
                scores.append(score)
                tokens.append(token)
                log_probs.append(log_prob)
        self._history.append((rows, tokens, log_probs))
        self._scores, self.last = np.array(scores).reshape(-1, width), np.array(tokens)
        self._sentences = self._sentences[order]
        self.done, self._begun = ([each[row] for row in order.tolist()] for each in (self.done, self._begun))
        origins = np.array(rows)
        self._state.select(order, origins)
        if self._constraints.reshape:
            self._written = np.concatenate((self._written[origins], self.last[:, None]), axis=1)

    def _tell(self, observer: Observer, ranked: tuple[Array, ...], at_limit: Array, kept: list) -> None:
        scores, beams, tokens, log_probs = ranked
        ended = ((tokens == self._constraints.end) | at_limit[:, None]) & (scores > -math.inf)
        ranking = self._sentences, beams, tokens, scores, log_probs, ended[:, : self._config.num_beams]
        places = np.array([[each[1:3] for each in live] for live in kept])  # (B, K, 2): beams and tokens
        observer.ranked(Ranking(*ranking, *np.moveaxis(places, 2, 0), np.array(self.done)))

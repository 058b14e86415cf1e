"""Decoding with one sequence for each output, a step at a time: greedy search, and the loop it shares with sampling."""

from collections.abc import Callable, Sequence

import numpy as np

from toolkit.decoding.constraints import Constraints
from toolkit.decoding.distribution import log_sum_exp
from toolkit.decoding.hypothesis import Hypothesis, hypothesis_of
from toolkit.decoding.observer import Observer
from toolkit.decoding.session import Session, fill_holes
from toolkit.functional.arrays import Array

# Tokens that there is room for at first; where that is not enough, it doubles.
_FIRST_ROOM = 64

# Chooses the next tokens: logits (N, V), the sequence of each row (N,), the number of tokens so far -> ids (N,).
Choose = Callable[[Array, Array, int], Array]

# Is told one after the other what a sequence writes, and says True where it shall end with that.
Watcher = Callable[[int], bool]


def most_probable(logits: Array, _sequences: Array, _step: int) -> Array:
    """Greedy search: the order of logits is the order of probabilities, so nothing is normalised."""
    return logits.argmax(axis=1)


class Writer:
    """Sequences that grow by a token a step; whoever has ended leaves the batch.

    Whoever calls `step` decides when, and may look at what was written, so that streaming needs no threads.
    """

    def __init__(
        self,
        session: Session,
        constraints: Constraints,
        length_penalty: float,
        choose: Choose = most_probable,
        observer: Observer | None = None,
    ):
        count = len(constraints.limits)
        self._session, self._constraints, self._choose = session, constraints, choose
        self._observer = observer
        self._length_penalty, self.end_mark = length_penalty, constraints.end
        self._sequences, self._last = np.arange(count), session.begin
        self._goes_on = np.ones(count, bool)  # of each of `_sequences`: False until it has left the session
        self._written = np.empty((count, _FIRST_ROOM), np.int64)
        self._log_probs = np.empty(self._written.shape)
        self._lengths = np.zeros(count, np.int64)
        self._stopped = np.zeros(count, bool)

    @property
    def done(self) -> bool:
        """Whether all sequences have ended."""
        return not self._goes_on.any()

    def step(self) -> tuple[Array, Array]:
        """Write one token for every sequence that goes on.  Returns which those are, and the tokens, (N,) each."""
        self._leave()
        sequences = self._sequences
        step = int(self._lengths[sequences[0]])
        if step == self._written.shape[1]:
            self._written, self._log_probs = (
                np.hstack((x, np.empty_like(x))) for x in (self._written, self._log_probs)
            )
        logits = self._session.logits(self._last)
        normalizers = log_sum_exp(logits)
        if self._observer is not None:
            self._observer.scored(sequences, logits, normalizers)
        written = self._written[sequences, :step] if self._constraints.reshape else None
        own, at_limit = self._constraints.impose(logits, normalizers, sequences, step, written)
        if self._observer is not None:
            self._observer.constrained(logits, normalizers)
        self._last = last = self._choose(logits, sequences, step)
        if self._observer is not None:
            self._observer.chosen(last)
        self._log_probs[sequences, step] = own[np.arange(len(last)), last] - normalizers
        self._written[sequences, step] = last
        self._lengths[sequences] += 1
        self._goes_on = (last != self.end_mark) & ~at_limit
        return sequences, last

    def end(self, sequences: Sequence[int]) -> None:
        """Let some sequences end with what they have; they count as finished."""
        self._stopped[sequences] = True
        self._goes_on &= ~self._stopped[self._sequences]

    def _leave(self) -> None:
        if not self._goes_on.all():
            order = fill_holes(self._goes_on)
            self._session.select(order, order)
            self._sequences, self._last = self._sequences[order], self._last[order]
            self._goes_on = self._goes_on[order]

    def hypotheses(self) -> list[Hypothesis]:
        """What every sequence has written, in order."""
        count, lengths = len(self._lengths), self._lengths
        finished = self._stopped.copy()
        begun = np.flatnonzero(lengths)
        last = self._written[begun, lengths[begun] - 1]
        finished[begun] |= self._constraints.ended_by_itself(begun, lengths[begun], last)
        most = lengths.max(initial=0)
        tokens, parts = self._written[:, :most].tolist(), self._log_probs[:, :most].tolist()
        return [
            self._hypothesis(tokens[index][: lengths[index]], parts[index][: lengths[index]], bool(finished[index]))
            for index in range(count)
        ]

    def _hypothesis(self, tokens: list[int], log_probs: list[float], finished: bool) -> Hypothesis:
        ids = tokens[:-1] if tokens and tokens[-1] == self.end_mark else tokens
        return hypothesis_of(ids, log_probs, self._length_penalty, finished)


def follow(writer: Writer, watchers: Sequence[Watcher] | None = None) -> list[Hypothesis]:
    """Let all sequences write to their ends, or to where their watchers end them."""
    while not writer.done:
        sequences, tokens = writer.step()
        if watchers is not None:
            pairs = zip(sequences.tolist(), tokens.tolist(), strict=True)
            writer.end([each for each, token in pairs if token != writer.end_mark and watchers[each](token)])
    return writer.hypotheses()

"""The generation loop: greedy search and sampling, a token a step, and `decode`, which runs the search asked for."""

from collections.abc import Callable, Sequence

import numpy as np

from toolkit.decoding.beam import beam_search
from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.hypothesis import Hypothesis, Observer, hypothesis_of
from toolkit.decoding.logits_processors import Constraints
from toolkit.decoding.sampling import Sampler, log_sum_exp
from toolkit.decoding.state import DecoderState, fill_holes
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array

# Tokens that there is room for at first; where that is not enough, it doubles.
_FIRST_ROOM = 64

# Logits of the last steps, about so many, are kept until one call finds the log-probabilities of all their tokens.
_KEPT_LOGITS = 1 << 16

# Receives the tokens of a sequence one by one, and returns True to end it with that token.
StoppingCriteria = Callable[[int], bool]


class GenerationLoop:
    """Greedy search or sampling: sequences that grow by a token a step; those that have ended leave the batch.

    The caller of `step` decides when, and may look at the outputs in between, so that streaming needs no threads.
    numbers: of the texts. Every sample has its own generator, seeded by the seed, its text and its place among them.
    """

    def __init__(
        self,
        state: DecoderState,
        constraints: Constraints,
        config: GenerationConfig,
        numbers: Sequence[int] = (),
        observer: Observer | None = None,
    ):
        count = len(constraints.limits)
        self._state, self._constraints, self._observer = state, constraints, observer
        self._sampler = None
        if config.samples:
            keys = [(config.seed, number, sample) for number in numbers for sample in range(config.sequences_each)]
            self._sampler = Sampler(config, keys, observer)
        self._length_penalty, self.eos = config.length_penalty, constraints.end
        # Sequences that go on, and their places in the state.
        self._sequences, self._places, self._last = np.arange(count), np.arange(count), state.begin.copy()
        self._written = np.empty((count, _FIRST_ROOM), np.int64)
        self._log_probs = np.empty(self._written.shape)
        self._kept: list[Array] = []  # the model's own logits of the last steps
        self._steps, self._lengths = 0, np.zeros(count, np.int64)
        self._stopped = np.zeros(count, bool)

    @property
    def done(self) -> bool:
        """True when all sequences have ended."""
        return not len(self._sequences)

    def step(self) -> tuple[Array, Array]:
        """Write one token for every sequence that goes on; return those sequences and their tokens, (N,) each."""
        unused = len(self._last) - len(self._places)
        if unused and self._state.leaving_pays(unused):
            self._let_go()
        sequences, step, observer, normalizers = self._sequences, self._steps, self._observer, None
        if step == self._written.shape[1]:
            self._written, self._log_probs = (
                np.hstack((x, np.empty_like(x))) for x in (self._written, self._log_probs)
            )
        logits = self._state.logits(self._last)
        if len(self._places) < len(logits):
            logits = logits[self._places]
        self._kept.append(logits.copy())
        if observer is not None:
            normalizers = log_sum_exp(logits)
            observer.scored(sequences, logits, normalizers)
        written = self._written[sequences, :step] if self._constraints.reshape else None
        _, at_limit = self._constraints.impose(logits, normalizers, sequences, step, written)
        if observer is not None:
            observer.constrained(logits, normalizers)
        # The order of logits is the order of probabilities: greedy search normalises nothing.
        last = self._sampler.choose(logits, sequences) if self._sampler else logits.argmax(axis=1)
        if observer is not None:
            observer.chosen(last)
        self._steps += 1
        self._lengths[sequences], self._written[sequences, step], self._last[self._places] = self._steps, last, last
        if len(self._kept) * logits.size >= _KEPT_LOGITS:
            self._settle()
        self._end_where((last == self.eos) | at_limit)
        return sequences, last

    def end(self, sequences: Sequence[int]) -> None:
        """End some sequences where they are; they count as finished."""
        self._stopped[sequences] = True
        self._end_where(self._stopped[self._sequences])

    def _end_where(self, ended: Array) -> None:
        """End some of the sequences that go on, (N,) of bool."""
        if ended.any():
            self._settle()
            self._sequences, self._places = self._sequences[~ended], self._places[~ended]

    def _let_go(self) -> None:
        """Let sequences that have ended, and were read for nothing since, leave the state."""
        self._settle()
        order = fill_holes(np.isin(np.arange(len(self._last)), self._places))
        self._state.select(order, order)
        self._sequences = self._sequences[np.searchsorted(self._places, order)]
        self._places, self._last = np.arange(len(order)), self._last[order]

    def _settle(self) -> None:
        """Find the log-probabilities of the tokens whose logits are kept."""
        if count := len(self._kept):
            logits, steps = np.concatenate(self._kept), slice(self._steps - count, self._steps)
            tokens = self._written[self._sequences, steps].T.reshape(-1)
            log_probs = logits[np.arange(len(tokens)), tokens] - log_sum_exp(logits)
            self._log_probs[self._sequences, steps] = log_probs.reshape(count, -1).T
            self._kept = []

    def run(self, stopping: Sequence[StoppingCriteria] | None = None) -> list[Hypothesis]:
        """Write all sequences to their ends, or until the stopping criteria of each end it."""
        while not self.done:
            sequences, tokens = self.step()
            if stopping is not None:
                pairs = zip(sequences.tolist(), tokens.tolist(), strict=True)
                self.end([each for each, token in pairs if token != self.eos and stopping[each](token)])
        return self.hypotheses()

    def hypotheses(self) -> list[Hypothesis]:
        """Return the output of every sequence so far, in order."""
        self._settle()
        lengths, finished = self._lengths, self._stopped.copy()
        self._log_probs[:, : self._steps][self._constraints.free(lengths, self._steps)] = 0
        begun = np.flatnonzero(lengths)
        last = self._written[begun, lengths[begun] - 1]
        finished[begun] |= self._constraints.ended_by_itself(begun, lengths[begun], last)
        found = []
        for written, log_probs, length, ended in zip(self._written, self._log_probs, lengths, finished, strict=True):
            tokens = written[:length].tolist()
            ids = tokens[:-1] if tokens[-1:] == [self.eos] else tokens
            found.append(hypothesis_of(ids, log_probs[:length].tolist(), self._length_penalty, bool(ended)))
        return found


def decode(
    state: DecoderState,
    constraints: Constraints,
    config: GenerationConfig,
    numbers: Sequence[int],
    stopping: Callable[[], StoppingCriteria] | None = None,
    observer: Observer | None = None,
) -> list[list[Hypothesis]]:
    """Find the hypotheses for every text of a state, best first.

    stopping: makes the stopping criteria of each sequence. observer: sees each step, and changes nothing.
    """
    if config.num_beams > 1:
        return beam_search(state, constraints, config, observer)
    loop, count = GenerationLoop(state, constraints, config, numbers, observer), config.sequences_each
    outputs = loop.run(None if stopping is None else [stopping() for _ in constraints.limits])
    groups = (outputs[begin : begin + count] for begin in range(0, len(outputs), count))
    return [sorted(group, key=lambda hypothesis: -hypothesis.score) for group in groups]


def check_stopping(config: GenerationConfig, stopping: Callable[[], StoppingCriteria] | None) -> None:
    """Raise ConfigError for stopping criteria with beams, whose outputs change to the end."""
    if stopping is not None and config.num_beams > 1:
        raise ConfigError(f"num_beams is {config.num_beams}, but beam search knows no stop strings: leave out one")

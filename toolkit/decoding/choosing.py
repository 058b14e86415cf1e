"""Choosing the next tokens of sequences of a continuous batch, together where the same rules hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from toolkit.decoding.beam import BeamSearch
from toolkit.decoding.generation import Job
from toolkit.decoding.hypothesis import Hypothesis, hypothesis_of
from toolkit.decoding.logits_processors import NOTHING, Constraints, LogitsProcessors
from toolkit.decoding.sampling import Shaping, choose_tokens, top_k_tokens
from toolkit.decoding.slots import SlotCache
from toolkit.functional.arrays import Array

_BEAMS = "num_return_sequences", "early_stopping", "length_penalty"

# Columns of a history that are there before they are needed.
_SPARE = 64

# The most probable tokens with their log-probabilities, best first.
Best = list[tuple[int, float]]


def best_tokens(logits: Array, normalizers: Array, counts: Sequence[int]) -> list[Best]:
    """Find the most probable tokens of each row, counts[n] of them.  Shapes: logits (N, V), normalizers (N,)."""
    found: list[Best] = [[]] * len(counts)
    if most := max(counts, default=0):
        rows = np.flatnonzero(counts)
        wanted = logits[rows]
        tokens = top_k_tokens(wanted, most)
        log_probs = np.take_along_axis(wanted, tokens, axis=1) - normalizers[rows, None]
        for row, ids, own in zip(rows.tolist(), tokens.tolist(), log_probs.tolist(), strict=True):
            found[row] = list(zip(ids[: counts[row]], own, strict=False))
    return found


@dataclass(eq=False)
class Seat:
    """A sequence that is written, or the beams of a text: its place, and what was written."""

    job: Job  # of its text alone
    key: int  # of its request
    rules: tuple  # see `rules_of`
    sample: int
    begin: int  # what is read first
    alternatives: int = 0  # how many of the most probable tokens are told
    place: int = -1
    numbers: Iterator[float] | None = None  # what its tokens are drawn by
    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)

    def hypothesis(self) -> Hypothesis:
        """Return the output so far."""
        job, length = self.job, len(self.ids)
        ends = self.ids[-1:] == [job.end]
        finished = ends and (job.config.forced_eos == "none" or length < job.limits[0])
        ids = self.ids[:-1] if ends else self.ids
        return hypothesis_of(ids, self.log_probs, job.config.length_penalty, bool(finished))


def rules_of(job: Job, bad_words: Sequence[Sequence[int]], key: int) -> tuple:
    """Name the rules that tokens are chosen by: those of equal name are chosen together."""
    config = job.config
    rules = config.num_beams, job.end, config.forced_eos, job.free
    if config.num_beams > 1:  # processors need searches that have written as much
        return *rules, *(getattr(config, name) for name in _BEAMS), key if job.processors([]) else None
    processing = config.repetition_penalty, config.no_repeat_ngram_size, frozenset(map(tuple, bad_words))
    return *rules, *processing, *(Shaping.kind(config) if config.samples else ())


def constraints_of(seats: Sequence[Seat], processors: LogitsProcessors) -> Constraints:
    """Make the constraints of sequences with equal rules."""
    first = seats[0].job
    limits = np.array([seat.job.limits[0] for seat in seats])
    prefixes, earliest = [seat.job.prefixes[0] for seat in seats], np.array([seat.job.earliest for seat in seats])
    return Constraints(limits, prefixes, earliest, first.config.forced_eos, processors, first.end, first.free)


class Writers:
    """Sequences that grow by a token a step, greedily or drawn, by the same rules."""

    def __init__(self) -> None:
        self.seats: list[Seat] = []

    def join(self, seats: Sequence[Seat]) -> None:
        """Let sequences take part from the next step on."""
        self._arrange([*self.seats, *seats])

    def leave(self, key: int) -> None:
        """Forget the sequences of a request."""
        if any(seat.key == key for seat in self.seats):
            self._arrange([seat for seat in self.seats if seat.key != key])

    def moved(self) -> None:
        """Note that sequences have other places."""
        self.places = np.array([seat.place for seat in self.seats], np.int64)

    def _arrange(self, seats: list[Seat]) -> None:
        self.seats = seats
        self.moved()
        self._alternatives = [seat.alternatives for seat in seats]
        self._last = np.array([seat.ids[-1] if seat.ids else seat.begin for seat in seats], np.int64)
        if seats:
            processors = seats[0].job.processors([])
            self._constraints, self._sequences = constraints_of(seats, processors), np.arange(len(seats))
            self._steps = np.array([len(seat.ids) for seat in seats])
            self._shaping = Shaping.of([seat.job.config for seat in seats])
            self._history = self._histories() if processors else None

    def _histories(self) -> Array:
        """Put prompts and outputs into rows that end together, `NOTHING` before them and room behind, (N, …)."""
        rows = [np.concatenate((seat.job.history(0), seat.ids)) for seat in self.seats]
        self._end = max(map(len, rows))
        history = np.full((len(rows), self._end + _SPARE), NOTHING, np.int64)
        for row, ids in zip(history, rows, strict=True):
            row[self._end - len(ids) : self._end] = ids
        return history

    @property
    def last(self) -> Array:
        """The tokens that are read next, (N, 1)."""
        return self._last[:, None]

    def choose(self, logits: Array, normalizers: Array) -> tuple[Array, Array, list[Best], Array]:
        """Choose a token for every sequence, by the model's own scores, which are changed.

        Shapes: logits (N, V), normalizers (N,) -> tokens, their log-probabilities, the most probable tokens, as many as
        each asks for, and which sequences end, (N,).
        """
        seats, history = self.seats, self._history
        best = best_tokens(logits, normalizers, self._alternatives)
        if history is not None:
            history = history[:, : self._end]
        own, at_limit = self._constraints.impose(logits, normalizers, self._sequences, self._steps, history)
        if seats[0].numbers is not None:
            tokens = choose_tokens(logits, np.array([next(seat.numbers) for seat in seats]), self._shaping)
        else:
            tokens = logits.argmax(axis=1)
        log_probs = own[np.arange(len(tokens)), tokens] - normalizers
        for seat, token, log_prob in zip(seats, tokens.tolist(), log_probs.tolist(), strict=True):
            seat.ids.append(token)
            seat.log_probs.append(log_prob)
        self._steps += 1
        self._last = tokens
        if history is not None:
            if self._end == self._history.shape[1]:
                self._history = self._histories()
            else:
                self._history[:, self._end] = tokens
                self._end += 1
        return tokens, log_probs, best, at_limit | (tokens == self._constraints.end)

    def end(self, ended: Array) -> list[Seat]:
        """Let the sequences leave that have ended, (N,) of bool, and return them."""
        gone = [seat for seat, each in zip(self.seats, ended.tolist(), strict=True) if each]
        self._arrange([seat for seat, each in zip(self.seats, ended.tolist(), strict=True) if not each])
        return gone


class Searchers:
    """Beam searches by the same rules, each of a text of its own, whose places they are told of as a decoder state."""

    def __init__(self, cache: SlotCache):
        self.seats: list[Seat] = []
        self._cache, self._slides = cache, False

    def join(self, seats: Sequence[Seat]) -> None:
        """Begin searches with the next step."""
        config = seats[0].job.config
        self._slides |= seats[0].job.slides
        first = np.array([seat.begin for seat in seats]).repeat(config.num_beams)
        began, self.seats = bool(self.seats), [*self.seats, *seats]
        self.moved()
        constraints = constraints_of(self.seats, seats[0].job.processors([0] * len(self.seats)))
        if began:
            self._search.join(constraints, first)
        else:
            self._search = BeamSearch(self, constraints, config, first)

    def leave(self, key: int) -> None:
        """Forget the search of a request."""
        rows = [row for row, seat in enumerate(self.seats) if seat.key != key]
        if len(rows) < len(self.seats):
            self._search.leave(rows)
            self.seats = [self.seats[row] for row in rows]
            self.moved()

    def moved(self) -> None:
        """Note that texts have other places."""
        self.places = np.array([seat.place for seat in self.seats], np.int64)

    @property
    def last(self) -> Array:
        """The tokens that are read next, (B, W)."""
        return self._search.last.reshape(len(self.seats), -1)

    def advance(self, logits: Array) -> list[tuple[Seat, list[Hypothesis]]]:
        """Continue all searches by a token, and return those that are done with what they found.

        logits: (B·W, V) of the next token, which are changed.
        """
        seats = self.seats
        found = [(seats[row], hypotheses) for row, hypotheses in self._search.advance(logits)]
        if len(found) == len(seats):
            self.seats = []
            self.moved()
        return found

    def leaving_pays(self, unused: int) -> bool:
        """Tell that a sentence that is done leaves at once: it costs nothing here."""
        return True

    def select(self, texts: Array, sequences: Array) -> None:
        """As that of a `DecoderState`, but that texts stay in their places."""
        self.seats = [self.seats[text] for text in texts.tolist()]
        self.moved()
        parents = sequences.reshape(len(texts), -1)
        parents -= texts[:, None] * parents.shape[1]
        self._cache.select(self.places, parents)
        if self._slides:
            self._cache.select_tokens(self.places, parents)

"""Continuous batching: requests join a batch that is being decoded, and leave it, between two steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from toolkit.decoding.choosing import Best, Seat, Writers, best_tokens, rules_of
from toolkit.decoding.config import ContinuationConfig, GenerationConfig
from toolkit.decoding.generation import Job, Texts
from toolkit.decoding.hypothesis import Hypothesis
from toolkit.decoding.lanes import Lane
from toolkit.decoding.sampling import log_sum_exp, uniform_numbers
from toolkit.decoding.state import window_length
from toolkit.decoding.weights import PackedWeights
from toolkit.errors import ConfigError, DataError, ModelError, ToolkitError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS

# Tokens of sources that are encoded between two steps, for each token of a prompt that is read: together, at once, by
# an encoder that is faster than reading with a cache.
_SOURCES = 4


@dataclass(frozen=True)
class Request:
    """A text to decode: what `generate` takes for one text, and what is to be told of it.

    config: seeded; None writes nothing, which is of use with score_prompt. number: as in `generate`. alternatives: how
    many of the most probable next tokens are told beside each that is written. score_prompt: the tokens of a GPT's
    prompt are told, too.
    """

    key: int  # names it among all that are in the batch
    ids: Sequence[int]  # of a prompt, without the BOS that the model reads by itself, or of a source, without EOS
    config: GenerationConfig | None
    number: int = 0
    prefix: Sequence[int] = ()
    forced_bos: int | None = None
    bad_words: Texts = ()
    end: int = EOS
    alternatives: int = 0
    score_prompt: bool = False


class Token(NamedTuple):
    """A token, and the model's own log-probability of it and of the most probable ones in its place, best first."""

    id: int
    log_prob: float | None  # None for the first token of all
    best: Best


@dataclass
class Progress:
    """News of a request: at least one for each, and `hypotheses` or `error` in the last."""

    key: int
    written: list[tuple[int, Token]] = field(default_factory=list)  # (sample, token), EOS included; no beams
    prompt: list[Token] | None = None  # once, where it was asked for
    cached: int = 0  # how many tokens of the prompt were not read again; with the first news that has tokens
    hypotheses: list[Hypothesis] | None = None  # at the end, as `generate` gives them
    error: ToolkitError | None = None


class _Task:
    """A request on its way: the job of its text, and the seats of its sequences."""

    def __init__(self, model: Seq2Seq | GPT, request: Request):
        self.request, self.key, self.cached = request, request.key, 0
        config, continues = request.config, isinstance(model, GPT)
        if not continues and (config is None or request.score_prompt):
            raise ConfigError("only the prompts of a language model are scored, not what is translated")
        config = config or ContinuationConfig(do_sample=False, past_context="slide")
        prefixes = [request.prefix] if len(request.prefix) else None
        forced_bos, end = request.forced_bos, request.end
        self.job = job = Job(model, [request.ids], config, request.bad_words, end, prefixes, forced_bos=forced_bos)
        config, text, context = job.config, job.texts[0], model.config.max_length
        if request.config is None and len(text) > context + 1:
            raise DataError(
                f"the prompt has {len(request.ids)} tokens, and at most {context} can be scored: shorten it"
            )
        begin, self.window = BOS, 0
        if continues:
            self.window = len(text) - 1 if request.config is None else window_length(len(text), context) - 1
            self.text, begin = np.array(text[-1 - self.window : -1], np.int64), int(text[-1])
        self.width, count = config.num_beams, config.sequences_each
        rules = rules_of(job, request.bad_words, self.key)
        self.seats = [Seat(job, self.key, rules, sample, begin, request.alternatives) for sample in range(count)]
        if config.samples:
            for seat in self.seats:
                seat.numbers = uniform_numbers((config.seed, request.number, seat.sample))
        self.sequences = self.width * count
        self.alive = list(self.seats)
        self.to_read: list[tuple[Seat, Array]] = []
        self.has_begun = False
        # Of the prompt's tokens, those that nobody predicts first.
        self.prompt = [Token(each, None, []) for each in text[: len(text) - self.window]]

    @property
    def remaining(self) -> int:
        """Count the tokens that are yet to be read."""
        return sum(len(ids) for _, ids in self.to_read)

    def take(self, most: int) -> list[tuple[Seat, Array]]:
        """Return the next tokens to read, at most so many, by the seats that they belong to."""
        taken = []
        while self.to_read and most:
            seat, ids = self.to_read[0]
            self.to_read[:1] = [(seat, ids[most:])] if len(ids) > most else []
            taken += [(seat, ids[:most])] if len(ids) else []
            most -= min(len(ids), most)
        return taken

    def score(self, logits: Array) -> None:
        """Note the model's own scores (N, V) of the next tokens of the prompt."""
        begin = len(self.prompt)
        labels = self.job.texts[0][begin : begin + len(logits)]
        normalizers = log_sum_exp(logits)
        log_probs = logits[np.arange(len(labels)), labels] - normalizers
        best = best_tokens(logits, normalizers, [self.request.alternatives] * len(labels))
        self.prompt += map(Token, labels, log_probs.tolist(), best)

    def hypotheses(self) -> list[Hypothesis]:
        """Return the outputs of all sequences, the most probable first."""
        return sorted((seat.hypothesis() for seat in self.seats), key=lambda hypothesis: -hypothesis.score)


class ContinuousBatch:
    """Requests that are decoded together, each as if it were alone.

    places: sequences that are written at once, at most; other requests wait for them in the order in which they came.
        One that needs more is written alone.
    piece: tokens of prompts that are read between two steps.

    A request is waiting, then it is read, then it is written; a context that slides is read in between.
    """

    def __init__(self, model: Seq2Seq | GPT, places: int = 32, piece: int = 64):
        self._model, self._places, self._piece = model, places, piece
        self._packed, self._pool = PackedWeights(), Pool()
        self._packed.renew(model)
        self._tape = Tape(memory=self._pool)
        self._lanes: dict[int, Lane] = {}  # by the number of beams
        self._waiting: dict[int, _Task] = {}
        self._reading: dict[int, _Task] = {}
        self._writing: dict[int, _Task] = {}
        self._news: dict[int, Progress] = {}
        self._used = 0  # sequences that there are places for
        self.steps = 0
        self.sequences = 0  # that the last step wrote
        self.prompt_tokens = self.cached_tokens = 0  # of all requests, and those of them that were not read again

    def add(self, request: Request) -> None:
        """Take a request.  Raises DataError and ConfigError as `generate`, at once, for one that cannot be decoded."""
        task = _Task(self._model, request)
        self._waiting[request.key] = task

    def cancel(self, key: int) -> None:
        """Forget a request; its places are free before the next step. Nothing more is told of it."""
        if self._waiting.pop(key, None) is None and (task := self._reading.get(key) or self._writing.get(key)):
            self._finish(task)

    @property
    def idle(self) -> bool:
        """True where there is nothing to do."""
        return not (self._waiting or self._reading or self._writing)

    @property
    def waiting(self) -> int:
        """The number of requests that have no place yet."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """The number of requests that are read or written."""
        return len(self._reading) + len(self._writing)

    def step(self) -> list[Progress]:
        """Read a piece of what is to be read, write a token of every sequence, and tell what has come of it."""
        self._news = {}
        self._slide()
        self._admit()
        self._read()
        self.sequences = 0
        for lane in self._lanes.values():
            if lane.groups:
                self.sequences += lane.cache.width * sum(len(group.places) for group in lane.groups)
                self._write(lane)
        self.steps += 1
        return list(self._news.values())

    def _tell(self, key: int) -> Progress:
        return self._news.setdefault(key, Progress(key))

    def _admit(self) -> None:
        """Give places to those who wait, as long as there are some."""
        for task in list(self._waiting.values()):
            if self._used and self._used + task.sequences > self._places:
                return
            del self._waiting[task.key]
            lane = self._lane(task.width)
            self._used += task.sequences
            for seat in task.seats:
                lane.take(seat)
            self._reading[task.key] = task
            if isinstance(self._model, GPT):
                held = lane.begin(task.seats[0], task.text, not task.request.score_prompt)
                task.to_read = [(task.seats[0], task.text[held:])]
                task.cached = max(held - self._model.config.begin, 0)

    def _lane(self, width: int) -> Lane:
        if width not in self._lanes:
            # Lanes of beams that nobody uses go: otherwise each number of beams would keep memory of its own.
            self._lanes = {each: lane for each, lane in self._lanes.items() if each == 1 or lane.is_used}
            self._lanes[width] = Lane(self._model, width, max(1, self._places // width), self._packed, self._pool)
        return self._lanes[width]

    def _read(self) -> None:
        """Read a piece of what there is to read: of the request that came first, and of those with least to read."""
        if not self._reading:
            return
        if isinstance(self._model, Seq2Seq):
            self._encode()
            return
        oldest, *others = self._reading.values()
        left, pieces = self._piece, []
        share = max(1, left // 2, left - sum(task.remaining for task in others))
        others.sort(key=lambda task: task.remaining)
        for task, most in [(oldest, share), *((task, left) for task in others)]:
            taken = task.take(min(most, left))
            pieces += [(task, *piece) for piece in taken]
            left -= sum(len(ids) for _, ids in taken)
        for width, lane in self._lanes.items():
            if own := [piece for piece in pieces if piece[0].width == width]:
                tasks, seats, texts = zip(*own, strict=True)
                states = lane.read([seat.place for seat in seats], texts)
                for task, x in zip(tasks, states, strict=True):
                    if task.request.score_prompt and not task.has_begun:
                        task.score(self._model.output.logits(x, self._tape))
        for task in (oldest, *others):
            if not task.remaining:
                self._begin(task)

    def _encode(self) -> None:
        """Encode sources that came together, as many as there is time for, or one."""
        chosen, count = [], 0
        for task in self._reading.values():
            count += len(task.request.ids) + 1
            if chosen and count > _SOURCES * self._piece:
                break
            chosen.append(task)
        for width, lane in self._lanes.items():
            tasks = [task for task in chosen if task.width == width]
            if tasks:
                lane.encode([task.request.ids for task in tasks], [task.seats[0].place for task in tasks])
        for task in chosen:
            self._begin(task)

    def _begin(self, task: _Task) -> None:
        """Let a request be written that has been read."""
        del self._reading[task.key]
        self._writing[task.key] = task
        lane = self._lane(task.width)
        if task.has_begun:
            lane.go_on(task.alive)
            return
        task.has_begun = True
        news = self._tell(task.key)
        news.cached = task.cached
        self.prompt_tokens += len(task.request.ids)
        self.cached_tokens += task.cached
        if task.request.score_prompt:
            news.prompt = task.prompt[len(task.prompt) - len(task.request.ids) :]
        if task.request.config is None:
            self._finish(task)
            news.hypotheses = []
        else:
            lane.join(task.alive)

    def _finish(self, task: _Task, damaged: bool = False) -> None:
        """Free the places of a request, which is then forgotten."""
        lane = self._lane(task.width)
        lane.pause(task.key)
        lane.leave(task.alive, damaged)
        self._used -= len(task.alive) * task.width
        self._reading.pop(task.key, None)
        self._writing.pop(task.key, None)

    def _fail(self, task: _Task) -> None:
        self._finish(task, damaged=True)
        error = ModelError("the model computes numbers that are not finite: it is damaged, or its training diverged")
        self._news[task.key] = Progress(task.key, error=error)

    def _slide(self) -> None:
        """Let sequences whose context is full forget all but its last half, which is read again."""
        context = self._model.config.max_length
        for task in list(self._writing.values()):
            if not task.job.slides or self._lane(task.width).cache.counts[task.alive[0].place] < context:
                continue
            lane, kept = self._lane(task.width), max(context // 2, 1) - 1
            if task.width > 1:
                lane.read_again(task.alive[0], kept)
                continue
            lane.pause(task.key)
            task.to_read = [(seat, lane.forget(seat.place, kept)) for seat in task.alive]
            self._reading[task.key] = self._writing.pop(task.key)

    def _write(self, lane: Lane) -> None:
        """Write a token of every sequence of a lane."""
        logits = lane.logits()
        if lane.cache.width > 1:
            for group in lane.groups:
                self._tell_found(lane, group.advance(lane.rows(logits, group.places)))
            return
        logits = logits[:, 0]
        normalizers = log_sum_exp(logits)
        for group in lane.groups:
            chosen = group.choose(lane.rows(logits, group.places), normalizers[group.places])
            self._tell_written(lane, group, *chosen)

    def _tell_written(
        self, lane: Lane, group: Writers, tokens: Array, log_probs: Array, best: list[Best], ended: Array
    ) -> None:
        """Tell what a group has written, and let those leave that have ended."""
        seats = group.seats
        for seat, *each in zip(seats, tokens.tolist(), log_probs.tolist(), best, strict=True):
            self._tell(seat.key).written.append((seat.sample, Token(*each)))
        if not (finite := np.isfinite(log_probs)).all():
            failed = {seat.key for seat, is_finite in zip(seats, finite, strict=True) if not is_finite}
            ended = ended[[seat.key not in failed for seat in seats]]
            for key in failed:
                self._fail(self._writing[key])
        if ended.any():
            for seat in group.end(ended):
                task = self._writing[seat.key]
                task.alive.remove(seat)
                lane.leave([seat])
                self._used -= 1
                if not task.alive:
                    del self._writing[seat.key]
                    self._tell(seat.key).hypotheses = task.hypotheses()

    def _tell_found(self, lane: Lane, found: list[tuple[Seat, list[Hypothesis]]]) -> None:
        """Tell what searches have found that are done."""
        for seat, hypotheses in found:
            task = self._writing[seat.key]
            if all(math.isfinite(each.log_prob) for each in hypotheses) and hypotheses:
                self._finish(task)
                self._tell(seat.key).hypotheses = hypotheses
            else:
                self._fail(task)

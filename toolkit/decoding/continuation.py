"""Prompts in, continuations out: the front door of decoder-only models."""

import math
from collections.abc import Callable, Generator, Sequence

import numpy as np

from toolkit.decoding.config import ContinuationConfig
from toolkit.decoding.constraints import Constraints
from toolkit.decoding.hypothesis import Hypothesis
from toolkit.decoding.kept import KeptPrompt
from toolkit.decoding.observer import Observer
from toolkit.decoding.processors import Bans, Processors
from toolkit.decoding.prompts import PromptSession
from toolkit.decoding.search import check_watch, decode, make_writer, sequences_each
from toolkit.decoding.step_weights import StepWeights
from toolkit.decoding.writer import Watcher
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.nn.memory import Pool
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS

Prompts = Sequence[Sequence[int]]

# Sequences that are written at once: past this a step of a large model takes as much longer as it writes more.
BATCH_SIZE = 16

# More tokens than anybody will wait for.
_ENDLESS = 1 << 40


def continue_prompts(
    model: GPT,
    prompts: Prompts,
    config: ContinuationConfig | None = None,
    batch_size: int = BATCH_SIZE,
    bans: Prompts = (),
    first: int = 0,
    watch: Callable[[], Watcher] | None = None,
    end: int = EOS,
    observer: Observer | None = None,
) -> list[list[Hypothesis]]:
    """Continue every prompt; returns `num_return_sequences` hypotheses for each, best first, in input order.

    prompts: ids without begin mark, which is read before them where the model knows it; hypotheses have new ids only.
    `batch_size` sequences are written together, which changes nothing but the time it takes; all samples of a prompt
    begin with one reading of it. They are independent and may repeat; beams are distinct, and fewer than asked where
    fewer sequences exist.
    bans: sequences of ids that are not written, not even where their first ids are the prompt's.
    first: the number of the first prompt. Prompt i is sampled by a generator that is seeded with first + i, so that
    parts of a long input give the samples of the whole.
    watch: makes a watcher for each sequence, which is told every id that the sequence writes, and ends it by saying
    True; what has ended so is finished.
    end: the special id that ends an output; no other is written.
    observer: of one prompt, is told what is considered on the way.

    Raises DataError for prompts that the model cannot read or that leave no room, ConfigError for bans that are none,
    for an end that is no special id, and for a watched beam search.
    """
    config = config or ContinuationConfig()
    if batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}: it must be at least 1")
    check_watch(config, watch)
    task = _Task(model, config, bans, end)
    texts = task.texts(prompts)
    results: list[list[Hypothesis]] = [[] for _ in texts]
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
    together = max(1, batch_size // max(sequences_each(config), config.num_beams))
    for begin in range(0, len(order), together):
        chosen = order[begin : begin + together]
        session, constraints = task.begin([texts[index] for index in chosen])
        found = decode(session, constraints, config, [first + index for index in chosen], watch, observer)
        for index, hypotheses in zip(chosen, found, strict=True):
            results[index] = hypotheses
    return results


def stream_prompt(
    model: GPT,
    prompt: Sequence[int],
    config: ContinuationConfig | None = None,
    bans: Prompts = (),
    number: int = 0,
    end: int = EOS,
    kept: KeptPrompt | None = None,
) -> Generator[int, None, Hypothesis]:
    """The ids that `continue_prompts` gives the prompt with this number, one by one as they are written.

    The generator's value is the whole hypothesis. kept: what was read of earlier prompts of this model, so that only
    the rest of this one is read; it is told what is read and written now.

    What is wrong is told at once, not with the first id; only numbers that turn out not to be finite are told at the
    end, by ModelError. Whoever stops asking stops the writing. Where outputs are known at the end only, which is so for
    beams, and for the best of several, all ids come then.
    """
    config = config or ContinuationConfig()
    if kept is not None and (config.num_beams > 1 or sequences_each(config) > 1 or config.past_context == "slide"):
        raise ConfigError("what was read is kept for one sequence that does not slide: leave out kept")
    task = _Task(model, config, bans, end, kept)
    (text,) = task.texts([prompt])
    return _written(task, text, number)


def _written(task: "_Task", text: list[int], number: int) -> Generator[int, None, Hypothesis]:
    session, constraints = task.begin([text])
    if task.config.num_beams > 1 or task.config.num_return_sequences > 1:
        ((best, *_),) = decode(session, constraints, task.config, [number])
        yield from best.ids
        return best
    writer = make_writer(session, constraints, task.config, [number])
    while not writer.done:
        _, (token,) = writer.step()
        if token != constraints.end:
            yield int(token)
    (hypothesis,) = writer.hypotheses()
    if not math.isfinite(hypothesis.log_prob):
        raise ModelError("the model computes numbers that are not finite: it is damaged, or its training diverged")
    return hypothesis


class _Task:
    """A model and how it shall write, checked; every batch begins here.

    Raises ConfigError for bans that are none and an end mark that is no special id.
    """

    def __init__(
        self, model: GPT, config: ContinuationConfig, bans: Prompts, end: int = EOS, kept: KeptPrompt | None = None
    ):
        if not 0 <= end < len(SPECIAL_TOKENS):
            raise ConfigError(f"end is {end}: it must be a special id, below {len(SPECIAL_TOKENS)}")
        self.config = config
        self._model, self._end, self._kept = model, end, kept
        self._pool, self._weights = (kept.pool, kept.weights) if kept else (Pool(), StepWeights())
        self._context, self._slide = model.config.max_length, config.past_context == "slide"
        self._bans = Bans(bans, model.config.vocab_size, end)

    def texts(self, prompts: Prompts) -> list[list[int]]:
        """What the model reads: the prompts, after its begin mark where it knows one.  Raises DataError."""
        mark = [BOS] if self._model.config.begin else []
        texts = [[*mark, *map(int, prompt)] for prompt in prompts]
        size, needed = self._model.config.vocab_size, max(self.config.shortest, 1)
        for number, text in enumerate(texts, 1):
            if not text:
                raise DataError(f"prompt {number} is empty: this model needs something to continue")
            if not (min(text) >= 0 and max(text) < size):
                raise DataError(f"prompt {number} has ids outside the model's vocabulary of {size}: wrong tokenizer?")
            if not self._slide and len(text) + needed > self._context:
                room = max(self._context - needed - len(mark), 0)
                raise DataError(
                    f"prompt {number} has {len(text) - len(mark)} tokens, and there is room for {room} before what is "
                    "written: shorten it, or let the context slide"
                )
        return texts

    def begin(self, texts: list[list[int]]) -> tuple[PromptSession, Constraints]:
        """Read some texts, and say what may follow."""
        config, copies = self.config, sequences_each(self.config)
        limits = self._limits(texts).repeat(copies)
        repeated = [text for text in texts for _ in range(copies)]
        processors = Processors(config, self._bans, repeated, self._model.config.begin_row)
        earliest_end = min(config.min_new_tokens, _ENDLESS)
        constraints = Constraints(limits, None, earliest_end, config.forced_end, processors, self._end)
        longest, weights = constraints.longest, self._weights
        session = PromptSession(self._model, texts, self._pool, copies, self._slide, longest, weights, self._kept)
        return session, constraints

    def _limits(self, texts: list[list[int]]) -> Array:
        """(B,) new tokens that each may have, end mark included."""
        given = self.config.max_new_tokens
        if self._slide:
            most = max(self._context, self.config.shortest) if given is None else given
            return np.full(len(texts), min(most, _ENDLESS), np.int64)
        left = [self._context - len(text) for text in texts]
        return np.array([each if given is None else min(each, given) for each in left], np.int64)

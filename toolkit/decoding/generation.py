"""The entrance to decoding: any number of texts in, hypotheses in the same order out, for both kinds of model."""

import math
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path

import numpy as np
from threadpoolctl import ThreadpoolController

from toolkit.decoding.config import ContinuationConfig, GenerationConfig
from toolkit.decoding.hypothesis import Hypothesis, Observer
from toolkit.decoding.logits_processors import BadWords, Constraints, LogitsProcessors
from toolkit.decoding.loop import GenerationLoop, StoppingCriteria, check_stopping, decode
from toolkit.decoding.state import DecoderState, GPTState, PrefixCache, Seq2SeqState
from toolkit.decoding.weights import PackedWeights
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.models.storage import load_model
from toolkit.nn.memory import Pool
from toolkit.parallel import Processes
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS

Texts = Sequence[Sequence[int]]

# Sentences that are translated at once, and sequences that continue prompts at once: past this a step of a large model
# takes as much longer as it writes more.
SENTENCES_AT_ONCE, SEQUENCES_AT_ONCE = 64, 16

# Bytes of memory that a call leaves to the next at most.
_MOST_LEFT = 32 << 20

# More tokens than anybody will wait for.
_ENDLESS = 1 << 40


def generate(
    model: Seq2Seq | GPT,
    texts: Texts,
    config: GenerationConfig | None = None,
    batch_size: int | None = None,
    prefixes: Texts | None = None,
    numbers: Sequence[int] | None = None,
    bad_words: Texts = (),
    forced_bos: int | None = None,
    stopping: Callable[[], StoppingCriteria] | None = None,
    end: int = EOS,
    packed: PackedWeights | None = None,
    observer: Observer | None = None,
) -> list[list[Hypothesis]]:
    """Decode every text; return `num_return_sequences` hypotheses for each, best first, in input order.

    Samples of one text are independent and may repeat; beams are distinct, and fewer than asked where fewer sequences
    exist.

    texts: ids without BOS and EOS: the sources of a `Seq2Seq`, or the prompts that a `GPT` continues (BOS is read
        before them if the model knows it; hypotheses hold new ids only).
    config: None for the defaults of `GenerationConfig`, or for a GPT of `ContinuationConfig`.
    batch_size: sentences of similar length, or sequences of a GPT, that are decoded together, which changes nothing
        but the time. All samples of a prompt begin with one reading of it.
    prefixes: ids that the outputs of a Seq2Seq begin with, one list for each text. They are part of the hypothesis and
        count in its score; max_new_tokens and min_new_tokens count the tokens after them.
    numbers: of the texts (None: from 0). Each is sampled by a generator that is seeded with its number, so that parts
        of a long input give the samples of the whole.
    bad_words: sequences of ids that no output contains, but for its prefix; they may begin in a prompt.
    forced_bos: the id that every output of a Seq2Seq begins with, in front of its prefix, such as its language. As with
        Hugging Face's forced_bos_token_id, it is part of the hypothesis, a new token with log-probability 0.
    stopping: makes stopping criteria for each sequence: a function that receives every id that the sequence writes, and
        returns True to end it. An output that ends so is finished.
    end: the special id that ends an output; no other is written.
    packed: of an earlier call with this model: copies of weights that need not be made again.
    observer: of one text, sees each step of the search.

    Raises DataError for texts and prefixes that the model cannot read or that leave no room, ConfigError for settings
    beyond what the model can write, for bad_words and an end that it does not have, and for stopping criteria with
    beams.
    """
    job = Job(model, texts, config, bad_words, end, prefixes, packed, forced_bos=forced_bos)
    check_batch_size(1 if batch_size is None else batch_size)
    config, together = job.config, batch_size or SENTENCES_AT_ONCE
    if job.continues:
        together = max(1, (batch_size or SEQUENCES_AT_ONCE) // max(config.sequences_each, config.num_beams))
    check_stopping(config, stopping)
    numbers = range(len(texts)) if numbers is None else numbers
    results: list[list[Hypothesis]] = [[] for _ in texts]
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
    for begin in range(0, len(order), together):
        chosen = order[begin : begin + together]
        state, constraints = job.begin(chosen)
        found = decode(state, constraints, config, [numbers[index] for index in chosen], stopping, observer)
        for index, hypotheses in zip(chosen, found, strict=True):
            results[index] = hypotheses
    job.leave()
    return results


def stream(
    model: Seq2Seq | GPT,
    text: Sequence[int],
    config: GenerationConfig | None = None,
    bad_words: Texts = (),
    number: int = 0,
    end: int = EOS,
    prefix_cache: PrefixCache | None = None,
    around: Callable[[], AbstractContextManager] = nullcontext,
) -> Generator[int, None, Hypothesis]:
    """Yield the ids that `generate` gives the text with this number, one by one as they are written.

    The generator's value is the whole hypothesis. prefix_cache: of earlier prompts of this GPT, so that only the rest
    of this one is read; it is extended by all that is read and written now. around: makes the context in which the
    text is read and in which each token is computed; between them, the caller has its own.

    Errors are raised at once, not with the first id; only numbers that turn out not to be finite raise ModelError at
    the end. Whoever stops asking stops the writing. Where outputs are known at the end only, which is so for beams, and
    for the best of several, all ids come then.
    """
    job = Job(model, [text], config, bad_words, end, prefix_cache=prefix_cache)

    def written() -> Generator[int, None, Hypothesis]:
        several = job.config.num_beams > 1 or job.config.num_return_sequences > 1
        with around():
            state, constraints = job.begin([0])
            if several:
                ((best, *_),) = decode(state, constraints, job.config, [number])
        if several:
            yield from best.ids
            return best
        loop = GenerationLoop(state, constraints, job.config, [number])
        while not loop.done:
            with around():
                _, (token,) = loop.step()
            if token != constraints.end:
                yield int(token)
        (hypothesis,) = loop.hypotheses()
        if not math.isfinite(hypothesis.log_prob):
            raise ModelError("the model computes numbers that are not finite: it is damaged, or its training diverged")
        return hypothesis

    return written()


class Job:
    """A model, settings and texts, checked; `begin` makes the state and the constraints of each batch."""

    def __init__(
        self,
        model: Seq2Seq | GPT,
        texts: Texts,
        config: GenerationConfig | None,
        bad_words: Texts,
        end: int,
        prefixes: Texts | None = None,
        packed: PackedWeights | None = None,
        prefix_cache: PrefixCache | None = None,
        forced_bos: int | None = None,
    ):
        if not 0 <= end < len(SPECIAL_TOKENS):
            raise ConfigError(f"end is {end}: it must be a special id, below {len(SPECIAL_TOKENS)}")
        self.continues = isinstance(model, GPT)
        config = config or (ContinuationConfig() if self.continues else GenerationConfig())
        self.config = config = config.seeded()  # one for all batches
        self._model, self.end, self._copies = model, end, config.sequences_each
        self.slides = self.continues and config.past_context == "slide"
        self._bad_words = BadWords(bad_words, model.config.vocab_size, end)
        if packed is not None:
            packed.renew(model)
        self._packed, self._prefix_cache = packed or PackedWeights(), prefix_cache
        self._pool, self._lone = self._packed.kept.pop("last", (Pool(), None))
        if prefix_cache:  # which renews its own weights
            if not self.continues or self.slides or self._copies > 1 or config.num_beams > 1:
                raise ConfigError("what was read is kept for one sequence that does not slide: leave out prefix_cache")
            self._pool, self._packed = prefix_cache.pool, prefix_cache.packed
        self.prefixes = [()] * len(texts) if prefixes is None else prefixes
        self.free = int(forced_bos is not None)
        if forced_bos is not None:
            self.prefixes = [[forced_bos, *prefix] for prefix in self.prefixes]
        if self.continues:
            begin = [BOS] if model.config.begin else []
            self.texts = self._histories = [[*begin, *map(int, text)] for text in texts]
            self._check_prompts(len(begin))
        else:
            self.texts, self._histories = texts, [[BOS]] * len(texts)
            self._check_sources()
        self.limits = np.array(self._room(), np.int64)  # tokens of each output, prefix and EOS included

    def _check_sources(self) -> None:
        config, most, prefixes, count = self.config, self._model.config.max_length, self.prefixes, len(self.texts)
        if config.max_new_tokens is not None and config.max_new_tokens > most:
            raise ConfigError(f"max_new_tokens is {config.max_new_tokens}: this model writes at most {most} tokens")
        if config.shortest > most:
            raise ConfigError(f"min_new_tokens is {config.min_new_tokens}: this model writes at most {most} tokens")
        if self.free and config.max_new_tokens == 1:
            raise ConfigError(
                "max_new_tokens is 1: it must be at least 2, for what every output begins with and its end"
            )
        check_ids(self._model, self.texts, "sentence {}")
        if len(prefixes) != count:
            raise DataError(f"there are {len(prefixes)} prefixes for {count} sentences: give one for each")
        check_ids(self._model, prefixes, "the prefix of sentence {}", most - max(config.shortest, 1))
        for number, prefix in enumerate(prefixes, 1):
            if self.end in prefix:
                raise DataError(f"the prefix of sentence {number} has an end mark in it: give ids of text alone")

    def _check_prompts(self, marks: int) -> None:
        if any(map(len, self.prefixes)):
            raise ConfigError("prefixes are of translations: put the beginning of an output into its prompt")
        room = self._model.config.max_length - max(self.config.shortest, 1) - marks
        for number, text in enumerate(self.texts, 1):
            if not text:
                raise DataError(f"prompt {number} is empty: this model needs something to continue")
            check_ids(self._model, [text], f"prompt {number}", math.inf)
            if not self.slides and len(text) - marks > room:
                raise DataError(
                    f"prompt {number} has {len(text) - marks} tokens, and there is room for {max(room, 0)} before what "
                    "is written: shorten it, or let the context slide"
                )

    def _room(self) -> list[int]:
        most, given, least = self._model.config.max_length, self.config.max_new_tokens, self.config.shortest
        if self.slides:
            return [min(given or max(most, least), _ENDLESS)] * len(self.texts)
        if self.continues:
            return [min(most - len(text), given or most) for text in self.texts]
        new = [(given or max(2 * len(source) + 20, least)) - self.free for source in self.texts]
        return [min(len(prefix) + each, most) for prefix, each in zip(self.prefixes, new, strict=True)]

    def begin(self, chosen: list[int]) -> tuple[DecoderState, Constraints]:
        """Read the texts with these numbers, and set the limits of their outputs."""
        model, config, repeated = self._model, self.config, np.repeat(chosen, self._copies)
        room = int(self.limits[chosen].max())
        if self.continues:
            texts, packed = [self.texts[index] for index in chosen], self._packed
            state = GPTState(model, texts, self._pool, self._copies, self.slides, room, packed, self._prefix_cache)
        else:
            state = self._translating([self.texts[index] for index in repeated], room * config.num_beams)
        prefixes, processors = [self.prefixes[index] for index in repeated], self.processors(repeated)
        limits, earliest = self.limits[repeated], self.earliest
        return state, Constraints(limits, prefixes, earliest, config.forced_eos, processors, self.end, self.free)

    @property
    def earliest(self) -> int:
        """The fewest new tokens before an end mark."""
        return min(self.config.min_new_tokens, _ENDLESS)

    def processors(self, chosen: Sequence[int]) -> LogitsProcessors:
        """Make the logits processors of the texts with these numbers."""
        histories = [self._histories[index] for index in chosen]
        return LogitsProcessors(self.config, self._bad_words, histories, self._model.config.begin_row)

    def history(self, index: int) -> Array:
        """Return the ids before the output of a text, as the processors see them."""
        history = np.array(self._histories[index], np.int64)
        return np.where(history == BOS, self._model.config.begin_row, history)

    def _translating(self, sources: Texts, room: int) -> Seq2SeqState:
        """Read sources; what one alone needed is kept for the next."""
        state = self._lone
        if state is None or state.model is not self._model or not state.begin_again(sources, room):
            state = Seq2SeqState(self._model, sources, self._pool, room, self._packed)
        self._lone = state if len(sources) == 1 else None
        return state

    def leave(self) -> None:
        """Leave memory, and the state of a lone source, to the next call with these weights."""
        if self._pool.allocated <= _MOST_LEFT:
            self._packed.kept["last"] = self._pool, self._lone


def check_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}: it must be at least 1")


def check_ids(model: Seq2Seq | GPT, texts: Texts, name: str, limit: float | None = None) -> None:
    """Raise DataError for ids outside the vocabulary, and for more than `limit` or (None) learned positions allow."""
    size = model.config.vocab_size
    if limit is None and model.config.positions == "learned":
        limit = model.config.max_length - 1
    for number, ids in enumerate(texts, 1):
        if limit is not None and len(ids) > limit:
            raise DataError(f"{name.format(number)} has {len(ids)} tokens, the model takes {limit}: shorten it")
        if len(ids) and not (min(ids) >= 0 and max(ids) < size):
            raise DataError(f"{name.format(number)} has ids outside the model's vocabulary of {size}: wrong tokenizer?")


class SharedDecoding:
    """`generate` by `workers` processes, which are started once, with the model as it is then, and stay until `close`.

    where: the model's directory, from which it is read again on systems that do not fork.
    """

    def __init__(self, model: Seq2Seq, where: str, workers: int):
        self._workers = workers
        self._processes = Processes(_Worker(model, where), workers)
        self.close = weakref.finalize(self, self._processes.close)

    def generate(
        self,
        sources: Texts,
        config: GenerationConfig,
        batch_size: int,
        prefixes: Texts | None,
        numbers: Sequence[int],
        bad_words: Texts,
        forced_bos: int | None = None,
    ) -> list[list[Hypothesis]]:
        shares, config = deal([len(source) for source in sources], self._workers), config.seeded()
        pieces = []
        for share in shares:
            begun = None if prefixes is None else [prefixes[index] for index in share]
            own = [sources[index] for index in share], config, batch_size, begun
            pieces.append((*own, [numbers[index] for index in share], bad_words, forced_bos))
        results: list[list[Hypothesis]] = [[] for _ in sources]
        for share, found in zip(shares, self._processes.in_order(pieces), strict=True):
            for index, hypotheses in zip(share, found, strict=True):
                results[index] = hypotheses
        return results


class _Worker:
    """Decodes the share of one process; a spawned one reads the model again."""

    def __init__(self, model: Seq2Seq | None, where: str, int8: bool = False):
        self._model, self._where, self._packed = model or load_model(Path(where), int8=int8), where, PackedWeights()
        if int8 and model is None:
            self._model.quantize()

    def __reduce__(self) -> tuple:
        return _Worker, (None, self._where, self._model.output.table.quantized)

    def __call__(self, arguments: tuple) -> list[list[Hypothesis]]:
        with self._threads.limit(limits=1, user_api="blas"), np.errstate(all="ignore"):
            return generate(self._model, *arguments, packed=self._packed)

    @cached_property
    def _threads(self) -> ThreadpoolController:
        return ThreadpoolController()


def deal(lengths: Sequence[int], workers: int) -> list[list[int]]:
    """Deal the numbers of sentences to workers, to and fro by length, so that all have about as much; none gets []."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    to_and_fro = [*range(workers), *reversed(range(workers))]
    shares: list[list[int]] = [[] for _ in range(workers)]
    for place, index in enumerate(order):
        shares[to_and_fro[place % (2 * workers)]].append(index)
    return [share for share in shares if share]

"""The front door: any number of sentences in, hypotheses in the same order out."""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.constraints import Constraints
from toolkit.decoding.hypothesis import Hypothesis
from toolkit.decoding.observer import Observer
from toolkit.decoding.processors import Bans, Processors
from toolkit.decoding.search import decode, sequences_each
from toolkit.decoding.session import Seq2SeqSession
from toolkit.decoding.step_weights import StepWeights
from toolkit.errors import ConfigError, DataError
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.memory import Pool
from toolkit.tokenization.special import BOS, EOS

Sources = Sequence[Sequence[int]]


def generate(
    model: Seq2Seq,
    sources: Sources,
    config: GenerationConfig | None = None,
    batch_size: int = 64,
    prefixes: Sequence[Sequence[int]] | None = None,
    numbers: Sequence[int] | None = None,
    bans: Sequence[Sequence[int]] = (),
    weights: StepWeights | None = None,
    observer: Observer | None = None,
) -> list[list[Hypothesis]]:
    """Decode every source sentence; returns `num_return_sequences` hypotheses for each, best first, in input order.

    sources: ids without special marks; an empty one is decoded like any other. `batch_size` sentences of similar
    length are decoded together, which changes nothing but the time it takes. Several samples of one sentence are
    independent and may repeat; beams are distinct, and fewer than asked where fewer sequences exist.
    prefixes: ids that the outputs begin with, one list for each sentence. They are part of the hypothesis and count
    in its score; max_new_tokens and min_new_tokens count what comes after them.
    numbers: of the sentences (None: from 0). Each is sampled by a generator that is seeded with its number, so that
    parts of a long input give the samples of the whole.
    bans: sequences of ids that no output contains, but for its prefix.
    weights: from an earlier call: copies that need not be made again.
    observer: of one sentence, is told what is considered on the way.

    Raises ConfigError where max_new_tokens exceeds what the model can write and for bans that are none, DataError for
    sources and prefixes that it cannot read.
    """
    config = config or GenerationConfig()
    if batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}: it must be at least 1")
    _check_room(model, config)
    check_ids(model, sources, "sentence {}")
    prefixes = [()] * len(sources) if prefixes is None else prefixes
    _check_prefixes(model, len(sources), prefixes, config)
    limits, banned = _limits(model, sources, prefixes, config), Bans(bans, model.config.vocab_size)
    pool, weights, count = Pool(), weights or StepWeights(), sequences_each(config)
    weights.renew(model.vector)
    numbers = range(len(sources)) if numbers is None else numbers
    results: list[list[Hypothesis]] = [[] for _ in sources]
    order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        repeated = [index for index in chosen for _ in range(count)]
        room = int(limits[chosen].max()) * config.num_beams
        session = Seq2SeqSession(model, [sources[index] for index in repeated], pool, room, weights)
        begun, begin = [prefixes[index] for index in repeated], model.config.begin_row
        processors = Processors(config, banned, [[BOS]] * len(repeated), begin)
        constraints = Constraints(limits[repeated], begun, config.min_new_tokens, config.forced_end, processors)
        found = decode(session, constraints, config, [numbers[index] for index in chosen], observer=observer)
        for index, hypotheses in zip(chosen, found, strict=True):
            results[index] = hypotheses
    return results


def _limits(model: Seq2Seq, sources: Sources, prefixes: Sources, config: GenerationConfig) -> np.ndarray:
    """(B,) tokens that each output may have, prefix and end mark included."""
    most, given = model.config.max_length, config.max_new_tokens
    new = [max(2 * len(source) + 20, config.shortest) if given is None else given for source in sources]
    return np.array([min(len(prefix) + each, most) for prefix, each in zip(prefixes, new, strict=True)], np.int64)


def _check_room(model: Seq2Seq, config: GenerationConfig) -> None:
    """Raises ConfigError for more tokens than the model can write."""
    most = model.config.max_length
    if config.max_new_tokens is not None and config.max_new_tokens > most:
        raise ConfigError(f"max_new_tokens is {config.max_new_tokens}: this model writes at most {most} tokens")
    if config.shortest > most:
        raise ConfigError(f"min_new_tokens is {config.min_new_tokens}: this model writes at most {most} tokens")


def _check_prefixes(model: Seq2Seq, count: int, prefixes: Sources, config: GenerationConfig) -> None:
    """Raises DataError for a prefix that is not text or that leaves no room for what must follow."""
    if len(prefixes) != count:
        raise DataError(f"there are {len(prefixes)} prefixes for {count} sentences: give one for each")
    check_ids(model, prefixes, "the prefix of sentence {}", model.config.max_length - max(config.shortest, 1))
    for number, prefix in enumerate(prefixes, 1):
        if EOS in prefix:
            raise DataError(f"the prefix of sentence {number} has an end mark in it: give ids of text alone")


def check_ids(model: Seq2Seq, texts: Sources, name: str, limit: int | None = None) -> None:
    """Raises DataError for ids outside the vocabulary, and for more of them than `limit` or learned positions allow.

    name: what to call the text of a number, from 1.
    """
    size = model.config.vocab_size
    if limit is None and model.config.positions == "learned":
        limit = model.config.max_length - 1
    for number, ids in enumerate(texts, 1):
        if limit is not None and len(ids) > limit:
            raise DataError(f"{name.format(number)} has {len(ids)} tokens, the model takes {limit}: shorten it")
        if len(ids) and not (min(ids) >= 0 and max(ids) < size):
            raise DataError(f"{name.format(number)} has ids outside the model's vocabulary of {size}: wrong tokenizer?")

"""The front door: any number of sentences in, hypotheses in the same order out."""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.beam import beam_search
from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.greedy import follow
from toolkit.decoding.hypothesis import Hypothesis
from toolkit.decoding.sampling import Sampler
from toolkit.decoding.session import Session
from toolkit.errors import ConfigError, DataError
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.memory import Pool

Sources = Sequence[Sequence[int]]


def generate(
    model: Seq2Seq, sources: Sources, config: GenerationConfig | None = None, batch_size: int = 64
) -> list[list[Hypothesis]]:
    """Decode every source sentence; returns `num_return_sequences` hypotheses for each, best first, in input order.

    sources: ids without special marks; an empty one is decoded like any other. `batch_size` sentences of similar
    length are decoded together, which changes nothing but the time it takes. Several samples of one sentence are
    independent and may repeat; beams are distinct, and fewer than asked where fewer sequences exist.

    Raises ConfigError where max_new_tokens exceeds what the model can write, DataError for sources it cannot read.
    """
    config = config or GenerationConfig()
    if batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}: it must be at least 1")
    _check_sources(model, sources)
    limits = _limits(model, sources, config)
    pool = Pool()
    results: list[list[Hypothesis]] = [[] for _ in sources]
    order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        for index, hypotheses in zip(chosen, _decode(model, sources, chosen, limits, config, pool), strict=True):
            results[index] = hypotheses
    return results


def _decode(
    model: Seq2Seq, sources: Sources, chosen: list[int], limits: np.ndarray, config: GenerationConfig, pool: Pool
) -> list[list[Hypothesis]]:
    """Decode one batch: the sentences with these numbers."""
    if config.samples:
        return _sample(model, sources, chosen, limits, config, pool)
    session = Session(model, [sources[index] for index in chosen], pool)
    if config.num_beams > 1:
        return beam_search(session, limits[chosen], config)
    return [[hypothesis] for hypothesis in follow(session, limits[chosen], config.length_penalty)]


def _sample(
    model: Seq2Seq, sources: Sources, chosen: list[int], limits: np.ndarray, config: GenerationConfig, pool: Pool
) -> list[list[Hypothesis]]:
    """Every sample is a sequence with its own generator, seeded by the seed, the sentence and the sample's number."""
    count = config.num_return_sequences
    keys = [(config.seed, index, number) for index in chosen for number in range(count)]
    repeated = np.repeat(chosen, count)
    session = Session(model, [sources[index] for index in repeated], pool)
    sampler = Sampler(config, keys, limits[repeated])
    samples = follow(session, limits[repeated], config.length_penalty, sampler)
    groups = (samples[begin : begin + count] for begin in range(0, len(samples), count))
    return [sorted(group, key=lambda hypothesis: -hypothesis.score) for group in groups]


def _limits(model: Seq2Seq, sources: Sources, config: GenerationConfig) -> np.ndarray:
    """(B,) tokens that each output may have, end mark included."""
    most = model.config.max_length
    if config.max_new_tokens is None:
        return np.array([min(2 * len(source) + 20, most) for source in sources], np.int64)
    if config.max_new_tokens > most:
        raise ConfigError(f"max_new_tokens is {config.max_new_tokens}: this model writes at most {most} tokens")
    return np.full(len(sources), config.max_new_tokens, np.int64)


def _check_sources(model: Seq2Seq, sources: Sources) -> None:
    size = model.config.vocab_size
    longest = model.config.max_length - 1 if model.config.positions == "learned" else None
    for number, source in enumerate(sources, 1):
        if longest is not None and len(source) > longest:
            raise DataError(f"sentence {number} has {len(source)} tokens, the model reads {longest}: shorten it")
        if len(source) and not (min(source) >= 0 and max(source) < size):
            raise DataError(f"sentence {number} has ids outside the model's vocabulary of {size}: wrong tokenizer?")

"""One pass over all positions beside as many passes as there are positions: the same numbers, in another time."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.decoding.state import GPTState
from toolkit.explain.parallel.recurrent import recurrence
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.nn.memory import Pool
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

_REPETITIONS = 3
_VOCABULARY = 64  # scores of tokens are not what is timed


def all_at_once(model: GPT, ids: Sequence[int], pool: Pool | None = None) -> Array:
    """The scores of every next token, in one pass.  Shapes: (T,) -> (T, V)."""
    tape = Tape(memory=pool or Pool())
    return model.logits(model.read(np.asarray(ids), Rows(np.array([len(ids)])), tape), tape)


def one_at_a_time(model: GPT, ids: Sequence[int], pool: Pool | None = None) -> Array:
    """The same scores as decoding finds them, a token at a time over the KV cache.  Shapes: (T,) -> (T, V)."""
    state = GPTState(model, [ids[:1]], pool or Pool(), new_tokens=len(ids))
    scores = np.empty((len(ids), model.config.vocab_size), model.vector.dtype)
    for step, token in enumerate(ids):
        scores[step] = state.logits(np.array([token]))[0]
    return scores


class Timing(NamedTuple):
    """The medians of some repetitions at one length, in seconds, on one core."""

    length: int
    apart: float  # the largest difference between the scores of the two ways
    at_once: float
    one_at_a_time: float
    recurrent: float
    at_once_products: int  # multiplications of the pass, each with an addition
    recurrent_products: int


def block_model(longest: int, width: int = 128) -> GPT:
    """A language model of one block with random values, that reads so many tokens."""
    config = GPTConfig(
        vocab_size=_VOCABULARY, width=width, layers=1, heads=4, feed_forward=4 * width, max_length=longest
    )
    model = GPT(config)
    model.allocate()
    model.initialize(np.random.default_rng(0))
    return model


def timed(model: GPT, length: int) -> Timing:
    """Both ways of reading a random text of that length, and a recurrent layer as wide as the model."""
    generator, pool, width = np.random.default_rng(length), Pool(), model.config.width
    ids = generator.integers(0, model.config.vocab_size, length)
    together, at_once = _timed(lambda: all_at_once(model, ids, pool))
    single, step_by_step = _timed(lambda: one_at_a_time(model, ids, pool))
    x = generator.standard_normal((1, length, width)).astype(np.float32)
    weight, recurrent = (generator.standard_normal((width, width)).astype(np.float32) / width**0.5 for _ in range(2))
    bias = np.zeros(width, np.float32)
    return Timing(
        length,
        float(np.abs(together - single).max()),
        at_once,
        step_by_step,
        _timed(lambda: recurrence(x, weight, recurrent, bias))[1],
        products_at_once(model.config, length),
        2 * length * width * width,
    )


def products_at_once(config: GPTConfig, length: int) -> int:
    """Multiplications of a block over T tokens, and of the output scores: the maps take T · 12 D² where F is 4 D, the
    scores and the contexts of causal attention half of 2 T² D."""
    width, hidden = config.width, config.feed_forward
    maps = config.layers * (4 * width * width + 2 * width * hidden) + config.vocab_size * width
    return length * maps + config.layers * length * (length + 1) * width


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the median of its times in seconds."""
    seconds = []
    for _ in range(_REPETITIONS):
        started = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - started)
    return result, statistics.median(seconds)

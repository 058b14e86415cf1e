"""Sampling: temperature, then top-k, then top-p, then a draw. Every sentence has a generator of its own."""

import numpy as np

from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.distribution import best_continuations
from toolkit.functional.arrays import Array


def top_k_tokens(logits: Array, count: int) -> Array:
    """The tokens with the `count` largest logits: exactly so many, on ties as well (Fan et al. 2018, section 5.1).

    Shapes: (N, V) -> (N, count), most probable first; all V where there are no more.
    """
    none_so_far = np.zeros((len(logits), 1), logits.dtype)
    return best_continuations(logits, none_so_far, min(count, logits.shape[1]))[2]


def nucleus(logits: Array, mass: float) -> Array:
    """Which tokens top-p keeps: from the most probable down to the one that reaches `mass`, which is kept too.

    A token is kept if those before it sum to less than `mass`, and the first one always (Holtzman et al. 2020, eq. 2).
    Shapes: (N, C) -> (N, C) of bool.
    """
    order = np.argsort(-logits, axis=1)
    ordered = _exp(np.take_along_axis(logits, order, axis=1))
    ordered /= ordered.sum(axis=1, keepdims=True)
    before = np.cumsum(ordered, axis=1) - ordered
    kept = before < mass
    kept[:, 0] = True
    result = np.empty_like(kept)
    np.put_along_axis(result, order, kept, axis=1)
    return result


def draw(logits: Array, uniform: Array) -> Array:
    """One index a row from softmax(logits): the first at which the cumulative sum exceeds the uniform number.

    Shapes: logits (N, C), -inf where never to be drawn, uniform (N,) in [0, 1) -> (N,).
    """
    cumulative = np.cumsum(_exp(logits), axis=1)
    return (cumulative > (uniform * cumulative[:, -1])[:, None]).argmax(axis=1)


def choose_tokens(logits: Array, uniform: Array, config: GenerationConfig) -> Array:
    """The next tokens by temperature, top-k, top-p and one uniform number a row.  Shapes: (N, V), (N,) -> (N,)."""
    tokens = None
    if 0 < config.top_k < logits.shape[1]:
        tokens = top_k_tokens(logits, config.top_k)
        logits = np.take_along_axis(logits, tokens, axis=1)
    logits = logits / config.temperature
    if config.top_p < 1:
        logits[~nucleus(logits, config.top_p)] = -np.inf
    chosen = draw(logits, uniform)
    return chosen if tokens is None else tokens[np.arange(len(tokens)), chosen]


class Sampler:
    """Chooses tokens for `follow`: row b of a batch draws from the generator seeded by keys[b].

    All numbers that a sentence may need are drawn at once, so that its sample depends neither on its batch mates nor
    on when they end.
    """

    def __init__(self, config: GenerationConfig, keys: list[tuple[int, ...]], limits: Array):
        self._config = config
        self._uniform = np.empty((len(keys), limits.max(initial=0)))
        for row, key, limit in zip(self._uniform, keys, limits, strict=True):
            row[:limit] = np.random.default_rng(key).random(limit)

    def __call__(self, logits: Array, sentences: Array, step: int) -> Array:
        return choose_tokens(logits, self._uniform[sentences, step], self._config)


def _exp(logits: Array) -> Array:
    """exp(z - max z) of each row, in float64: cumulative sums over a vocabulary need it."""
    return np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64)

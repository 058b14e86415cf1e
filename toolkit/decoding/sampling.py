"""Sampling: temperature, then top-k, top-p and min-p, then a draw. Every sequence has a generator of its own.

Past top-k everything works on weights: probabilities up to a factor, in float64, the largest of each row exactly 1.
"""

import numpy as np

from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.distribution import best_continuations, largest_first
from toolkit.decoding.observer import Observer
from toolkit.functional.arrays import Array

# Top-p seldom keeps more tokens than this: so many of the largest are found and sorted before all are.
_FEW = 256

# Random numbers that a sequence draws at once: one for each of so many steps.
_NUMBERS = 64


def top_k_tokens(logits: Array, count: int) -> Array:
    """The tokens with the `count` largest logits: exactly so many, on ties as well (Fan et al. 2018, section 5.1).

    Shapes: (N, V) -> (N, count), most probable first; all V where there are no more.
    """
    none_so_far = np.zeros((len(logits), 1), logits.dtype)
    return best_continuations(logits, none_so_far, min(count, logits.shape[1]))[2]


def weights_of(logits: Array, temperature: float) -> Array:
    """exp((z - max z) / temperature) of each row: the softmax without its denominator.  Shapes: (N, C) -> (N, C)."""
    shifted = np.subtract(logits, logits.max(axis=1, keepdims=True), dtype=np.float64)
    if temperature != 1:
        shifted /= temperature
    return np.exp(shifted, out=shifted)


def nucleus(weights: Array, mass: float) -> Array:
    """Which tokens top-p keeps: from the most probable down to the one that reaches `mass`, which is kept too.

    A token is kept if those before it sum to less than `mass`, and the first one always (Holtzman et al. 2020, eq. 2).
    Shapes: (N, C) -> (N, C) of bool.
    """
    goal = mass * weights.sum(axis=1, keepdims=True)
    order, enough = largest_first(weights, _FEW), False
    reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    if order.shape[1] < weights.shape[1]:
        enough = (reached[:, -1:] >= goal).all()
        if not enough:
            order = largest_first(weights, weights.shape[1])
            reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    kept = np.ones(order.shape, bool)
    kept[:, 1:] = reached[:, :-1] < goal  # what the tokens before it sum to
    result = np.zeros(weights.shape, bool)
    np.put_along_axis(result, order, kept, axis=1)
    return result


def draw(weights: Array, uniform: Array) -> Array:
    """One index a row, as probable as its weight: the first at which the cumulative sum exceeds the uniform number.

    Shapes: weights (N, C), 0 where never to be drawn, uniform (N,) in [0, 1) -> (N,).
    """
    cumulative = np.cumsum(weights, axis=1)
    return (cumulative > (uniform * cumulative[:, -1])[:, None]).argmax(axis=1)


def choose_tokens(logits: Array, uniform: Array, config: GenerationConfig, observer: Observer | None = None) -> Array:
    """The next tokens by temperature, top-k, top-p, min-p and one uniform number a row.  Shapes: (N, V), (N,) -> (N,).

    Top-k may come before the temperature, which keeps the order of tokens. Min-p keeps p ≥ min_p · max p (Nguyen et al.
    2024, section 3).
    """
    tokens, watch = None, _unwatched if observer is None else observer.weighed
    if observer is not None:
        watch("temperature", None, weights_of(logits, config.temperature))
    if 0 < config.top_k < logits.shape[1]:
        tokens = top_k_tokens(logits, config.top_k)
        logits = np.take_along_axis(logits, tokens, axis=1)
    weights = weights_of(logits, config.temperature)
    if tokens is not None:
        watch("top_k", tokens, weights)
    if config.top_p < 1:
        weights[~nucleus(weights, config.top_p)] = 0
        watch("top_p", tokens, weights)
    if config.min_p > 0:
        weights[weights < config.min_p] = 0
        watch("min_p", tokens, weights)
    chosen = draw(weights, uniform)
    return chosen if tokens is None else tokens[np.arange(len(tokens)), chosen]


def _unwatched(_stage: str, _tokens: Array | None, _weights: Array) -> None:
    """There is no observer."""


class Sampler:
    """Chooses tokens for a `Writer`: row b of a batch draws from the generator seeded by keys[b].

    A sequence's number for a step depends on nothing else, neither on its batch mates nor on when they end.
    """

    def __init__(self, config: GenerationConfig, keys: list[tuple[int, ...]], observer: Observer | None = None):
        self._config, self._observer = config, observer
        self._generators = [np.random.default_rng(key) for key in keys]
        self._uniform = np.empty((len(keys), _NUMBERS))

    def __call__(self, logits: Array, sequences: Array, step: int) -> Array:
        place = step % _NUMBERS
        if place == 0:
            for sequence in sequences:
                self._uniform[sequence] = self._generators[sequence].random(_NUMBERS)
        return choose_tokens(logits, self._uniform[sequences, place], self._config, self._observer)

"""From logits to tokens: normalisation, the best few continuations, and sampling.

Sampling applies temperature, top-k, top-p and min-p, and draws. Past top-k it works on weights: probabilities up to a
factor, in float64, the largest of each row exactly 1. Every sequence has a generator of its own.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.hypothesis import Observer
from toolkit.functional.arrays import Array, row_blocks

# The fewest columns of `best_continuations`. Rows of fewer values than twice as many, and fewer values than that of all
# rows together, are divided as they are: each call costs as much as some hundred of them.
_LEAST_COLUMNS, _FEW_VALUES = 256, 4096

# While the sums of exponentials stay within these bounds, none has overflowed and no row has vanished, and the usual
# subtraction of the largest logit can be left out.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-30, 1e30

# Top-p seldom keeps more tokens than this: this many of the largest are found and sorted before all are.
_FEW = 256

_NOBODY = Observer()
_ones = lru_cache(maxsize=8)(np.ones)

# Random numbers that a sequence draws at once, one for each step.
_NUMBERS = 64


def log_sum_exp(logits: Array) -> Array:
    """Compute log Σ_v exp z_nv, so that log_softmax(z)_nv = z_nv - log_sum_exp(z)_n, for the few v that are needed.

    Shapes: (N, V) -> (N,), in float64 because sequences add these up.
    """
    with np.errstate(over="ignore"):
        totals = _sums_of_exponentials(logits)
    found = totals.tolist()
    if min(found, default=1) > _LEAST_TOTAL and max(found, default=1) < _LARGEST_TOTAL:
        return np.log(totals, dtype=np.float64)
    largest = logits.max(axis=1, keepdims=True)
    return np.log(_sums_of_exponentials(logits - largest), dtype=np.float64) + largest[:, 0]


def _sums_of_exponentials(logits: Array) -> Array:
    """Compute Σ_v exp z_nv.  Shapes: (N, V) -> (N,)."""
    ones = _ones(logits.shape[1], logits.dtype)
    parts = [np.exp(logits[rows]) @ ones for rows in row_blocks(*logits.shape)]
    return parts[0] if len(parts) == 1 else np.concatenate((ones[:0], *parts))


def best_continuations(logits: Array, scores: Array, count: int) -> tuple[Array, Array, Array]:
    """Find the `count` largest sums z_nv + score_n over all beams n and tokens v of each sentence, best first.

    The logits of a row are written as lines of S columns. A column's maximum is one of the sums, so the `count` best
    columns contain the `count` best sums, and only those columns are looked at one by one.

    Shapes: logits (B·W, V), scores (B, W) -> sums, beams and tokens (B, count), or (B, W·V) where that is less.
    """
    (batch, width), size = scores.shape, logits.shape[1]
    span = _span(size, count)
    if rest := size % span:
        nothing = np.full((len(logits), span - rest), -np.inf, logits.dtype)
        logits = np.concatenate((logits, nothing), axis=1)
    lines = logits.reshape(len(logits), -1, span)
    maxima = lines.max(axis=1).reshape(batch, width, span) + scores[:, :, None]
    beams, columns = np.divmod(_largest(maxima.reshape(batch, -1), count), span)
    rows = np.arange(batch)[:, None] * width + beams
    sums = (lines[rows, :, columns] + scores.reshape(-1)[rows][:, :, None]).reshape(batch, -1)  # columns, then lines
    best = largest_first(sums, count)
    numbers = _row_numbers(best)
    places, line = np.divmod(best, lines.shape[1])
    tokens = np.minimum(columns[numbers, places] + span * line, size - 1)
    return sums[numbers, best], beams[numbers, places], tokens


@lru_cache(maxsize=64)
def _span(size: int, count: int, least: int = _LEAST_COLUMNS) -> int:
    """Choose the number of columns of a row of `size` entries, the `count` best of which are sought.

    Most time is saved by about √(size · count) of them, and some by columns of equal length.
    """
    aim = max(least, math.isqrt(size * count))
    equal = [span for span in range(max(1, 3 * aim // 4), min(2 * aim, size) + 1) if size % span == 0]
    return min(equal, key=lambda span: abs(span - aim), default=min(aim, size))


def largest_first(values: Array, count: int) -> Array:
    """Find the indices of the `count` largest entries of each row, in descending order of the entries."""
    best = _largest(values, count)
    numbers = _row_numbers(best)
    return best[numbers, np.argsort(-values[numbers, best], axis=1, kind="stable")]


def _largest(values: Array, count: int) -> Array:
    """Find the indices of the `count` largest entries of each row, or of all where there are no more; in any order.

    Long rows are searched by columns: the `count` best columns contain the `count` best entries.
    """
    size = values.shape[1]
    if count >= size:
        return np.broadcast_to(np.arange(size), values.shape)
    span = _span(size, count, 1)
    if size < 2 * _LEAST_COLUMNS or values.size < _FEW_VALUES or size % span or size < 4 * span:
        return np.argpartition(values, size - count, axis=1)[:, size - count :]
    columns = _largest(values.reshape(len(values), -1, span).max(axis=1), count)
    candidates = (columns[:, :, None] + np.arange(0, size, span)).reshape(len(values), -1)
    numbers = _row_numbers(candidates)
    return candidates[numbers, _largest(values[numbers, candidates], count)]


def _row_numbers(chosen: Array) -> Array:
    """Number the rows, (B, 1): together with `chosen` (B, C) the index of some entries of every row."""
    return np.arange(len(chosen))[:, None]


def top_k_tokens(logits: Array, count: int) -> Array:
    """Find the tokens with the `count` largest logits: exactly `count`, on ties as well (Fan et al. 2018, section 5.1).

    Shapes: (N, V) -> (N, count), most probable first; all V where there are no more.
    """
    no_scores = np.zeros((len(logits), 1), logits.dtype)
    return best_continuations(logits, no_scores, min(count, logits.shape[1]))[2]


class Shaping(NamedTuple):
    """The settings of sampling that rows of one batch may each have of their own, numbers or (N, 1)."""

    temperature: float | Array
    top_k: int
    top_p: float | Array
    min_p: float | Array

    @classmethod
    def of(cls, configs: Sequence[GenerationConfig]) -> "GenerationConfig | Shaping":
        """Put those of every row together: they agree in top_k, and in which others are in force."""
        first = configs[0]
        if all(config is first for config in configs):
            return first
        columns = [
            np.array([[getattr(config, name)] for config in configs]) for name in ("temperature", "top_p", "min_p")
        ]
        temperature, top_p, min_p = columns
        return cls(temperature, first.top_k, top_p if first.top_p < 1 else 1.0, min_p if first.min_p > 0 else 0.0)

    @staticmethod
    def kind(config: GenerationConfig) -> tuple:
        """Name those that can be put together."""
        return config.top_k, config.top_p < 1, config.min_p > 0


def weights_of(logits: Array, temperature: float | Array) -> Array:
    """Compute exp((z - max z) / temperature): the softmax without its denominator.

    Shapes: (N, C), temperature a number or (N, 1) -> (N, C).
    """
    shifted = np.subtract(logits, logits.max(axis=1, keepdims=True), dtype=np.float64)
    if _differs(temperature, 1):
        shifted /= temperature
    return np.exp(shifted, out=shifted)


def _differs(setting: float | Array, off: float) -> bool:
    return isinstance(setting, np.ndarray) or setting != off


def nucleus(weights: Array, mass: float | Array) -> Array:
    """Mark the tokens that top-p keeps: from the most probable down to the one that reaches `mass`, which is kept too.

    A token is kept if those before it sum to less than `mass`, and the first one always (Holtzman et al. 2020, eq. 2).
    Shapes: (N, C), mass a number or (N, 1) -> (N, C) of bool.
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
    """Draw an index for each row, as probable as its weight: the first whose cumulative sum exceeds the uniform number.

    Shapes: weights (N, C), 0 where never to be drawn, uniform (N,) in [0, 1) -> (N,).
    """
    cumulative = np.cumsum(weights, axis=1)
    return (cumulative > (uniform * cumulative[:, -1])[:, None]).argmax(axis=1)


def choose_tokens(
    logits: Array, uniform: Array, config: GenerationConfig | Shaping, observer: Observer | None = None
) -> Array:
    """Choose the next tokens by temperature, top-k, top-p, min-p and a uniform number.  Shapes: (N, V), (N,) -> (N,).

    Top-k may come before the temperature, which keeps the order of tokens. Min-p keeps p ≥ min_p · max p (Nguyen et al.
    2024, section 3).
    """
    tokens, watch = None, (observer or _NOBODY).weighed
    if observer is not None:
        watch("temperature", None, weights_of(logits, config.temperature))
    if 0 < config.top_k < logits.shape[1]:
        tokens = top_k_tokens(logits, config.top_k)
        logits = np.take_along_axis(logits, tokens, axis=1)
    weights = weights_of(logits, config.temperature)
    if tokens is not None:
        watch("top_k", tokens, weights)
    if _differs(config.top_p, 1):
        weights[~nucleus(weights, config.top_p)] = 0
        watch("top_p", tokens, weights)
    if _differs(config.min_p, 0):
        weights[weights < config.min_p] = 0
        watch("min_p", tokens, weights)
    chosen = draw(weights, uniform)
    return chosen if tokens is None else tokens[np.arange(len(tokens)), chosen]


class Sampler:
    """Chooses tokens for a `GenerationLoop`: row b of a batch draws from the generator seeded by keys[b].

    A sequence's number for a step depends on nothing else, neither on its batch mates nor on when they end.
    """

    def __init__(self, config: GenerationConfig, keys: list[tuple[int, ...]], observer: Observer | None = None):
        self._config, self._observer = config, observer
        self._uniform = [uniform_numbers(key) for key in keys]

    def choose(self, logits: Array, sequences: Array) -> Array:
        """Choose the next tokens of some sequences.  Shapes: (N, V), (N,) -> (N,)."""
        uniform = np.array([next(self._uniform[sequence]) for sequence in sequences.tolist()])
        return choose_tokens(logits, uniform, self._config, self._observer)


def uniform_numbers(key: tuple[int, ...]) -> Iterator[float]:
    """Yield the random numbers in [0, 1) that the tokens of a sequence are drawn by, one for each."""
    generator = np.random.default_rng(key)
    while True:
        yield from generator.random(_NUMBERS).tolist()

"""The attention of a decoding step: one query of each sequence over the entries that its text has in the cache."""

import math
from collections.abc import Callable

import numpy as np

from toolkit.functional.arrays import Array, Empty

# While the sums of exponentials stay within these bounds, none has overflowed and no row has vanished.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-30, 1e30

Attend = Callable[[int, Array | None], None]


class StepAttention:
    """Attention of B texts with W queries each, all queries of a text over the same entries.

    Exponentials are taken as they are, without subtracting the largest score, unless it is told to be `careful`; the
    sums that they are divided by tell at the end of a step whether that was right (`is_safe`), and where it was not,
    the step is done again.  sizes: B, W, H and K. layers: how many different sums to keep. empty: lends memory.
    """

    def __init__(
        self, sizes: tuple[int, int, int, int], layers: int, dtype: type, empty: Empty = np.empty, careful: bool = False
    ):
        texts, width, heads, head_width = sizes
        self.careful, self.dtype, self._empty = careful, dtype, empty
        self._sizes = sizes
        self._scaled = np.empty(texts * width * heads * head_width, dtype)
        self._averages = np.empty_like(self._scaled)
        self._totals = np.ones((layers, texts * heads * width), dtype)
        self._scale = np.array(1 / math.sqrt(head_width), dtype)
        self._scores = self._ones = np.empty(0, dtype)

    def prepared(self, query: Array, keys: Array, values: Array, out: Array, layer: int) -> Attend:
        """A function of how many keys there are, and which are read, by which every query takes the average of the
        values that it reads, weighted by how well their keys match it.

        Shapes: query and out (B·W, H·K); keys and values (B, capacity, G, K), of which the first S are looked at; read
        (B, W or 1, S), 1 where read and 0 elsewhere (None: all).  layer: in which of the sums to keep.
        """
        texts, width, heads, head_width = self._sizes
        capacity, groups = keys.shape[1:3]
        by_query = texts, groups, width, heads // groups
        stack = texts, groups, width * heads // groups
        inputs, outputs = (x.reshape(texts, width, groups, -1, head_width).swapaxes(1, 2) for x in (query, out))
        scaled, averages = (x.reshape(*by_query, head_width) for x in (self._scaled, self._averages))
        queries, contexts = (x.reshape(*stack, head_width) for x in (self._scaled, self._averages))
        totals = self._totals[layer]
        by_key, by_value = keys.transpose(0, 2, 3, 1), values.swapaxes(1, 2)
        all_scores, ones = self._scores_for(capacity)
        flat_totals, split_totals = totals.reshape(-1), totals.reshape(*by_query, 1)

        def attend(count: int, read: Array | None) -> None:
            np.multiply(inputs, self._scale, scaled)
            flat = all_scores[: texts * groups * stack[2] * count].reshape(-1, count)
            scores = flat.reshape(*stack, count)
            np.matmul(queries, by_key[..., :count], scores)
            if self.careful:
                _subtract_largest(scores.reshape(*by_query, count), read)
            np.exp(flat, flat)
            if read is not None:
                weights = scores.reshape(*by_query, count)
                np.multiply(weights, read[:, None, :, None], weights)
            np.matmul(flat, ones[:count], flat_totals)
            np.matmul(scores, by_value[:, :, :count], contexts)
            np.divide(averages, split_totals, outputs)

        return attend

    def _scores_for(self, capacity: int) -> tuple[Array, Array]:
        """Memory for the scores of so many keys, which all layers use in turn, and as many ones."""
        size = self._totals.shape[1] * capacity
        if len(self._scores) < size:
            self._scores = self._empty((size,), self._totals.dtype)
            self._ones = np.ones(capacity, self._totals.dtype)
        return self._scores, self._ones

    @property
    def is_safe(self) -> bool:
        """Whether no sum of the last step has overflowed or vanished."""
        least, largest = np.minimum.reduce(self._totals, axis=None), np.maximum.reduce(self._totals, axis=None)
        return bool(least > _LEAST_TOTAL and largest < _LARGEST_TOTAL)


def _subtract_largest(scores: Array, read: Array | None) -> None:
    """Shapes: scores (B, G, W, H / G, S), changed in place; read (B, W, S)."""
    if read is not None:
        np.copyto(scores, -np.inf, where=read[:, None, :, None] == 0)
    scores -= scores.max(axis=-1, keepdims=True)

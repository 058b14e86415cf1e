"""Shared by all pairs: type names, and blocks of rows small enough to stay in the cache."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray
Saved = Any
Empty = Callable[..., Array]

# A chain of element-wise operations runs over blocks of about this many elements: 128 kB of float32, so that the
# second operation of a chain finds in the second-level cache what the first one wrote.
BLOCK_ELEMENTS = 32_768


def row_blocks(rows: int, width: int, elements: int = BLOCK_ELEMENTS) -> Iterator[slice]:
    """Yield slices that cut `rows` rows of `width` elements into blocks of about `elements` elements."""
    step = max(1, elements // max(width, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def empty_like(x: Array, empty: Empty) -> Array:
    """Return an array of this shape and type whose rows or columns lie one after the other as those of `x` do."""
    is_transposed = x.ndim == 2 and x.strides[0] < x.strides[1]
    return empty(x.shape[::-1], x.dtype).T if is_transposed else empty(x.shape, x.dtype)


def sum_rows(x: Array) -> Array:
    """Return the sum over rows, (N, D) -> (D,), as a matrix product: several times faster than `x.sum(axis=0)`."""
    return np.ones(len(x), dtype=x.dtype) @ x

"""The affine map y = x W + b, and the matrix product that it is made of.

BLAS packs both operands of a large product anew, which pays where many rows use what was packed. With few rows, as in
a decoding step, it takes longer than the arithmetic. Small products it computes straight from where the operands lie.
So a large product of few rows is divided into tiles of some rows and columns, views all of them, that one call of
`np.matmul` goes through. A decoding step keeps copies of its matrices whose tiles lie in one piece each.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, empty_like, sum_rows
from toolkit.functional.int8 import Int8Matrix

# OpenBLAS packs nothing for products of up to 100³ multiplications.
_SMALL_PRODUCT = 1_000_000
# Columns of a tile: a matrix that lies transposed is read along its columns, and should have narrow ones.
_COLUMNS, _COLUMNS_TRANSPOSED = 64, 32
# Rows of a tile, at most.
_ROWS = 32
# With more rows than this, what BLAS packs is used often enough where a matrix lies transposed.
_FEW_ROWS = 96
# Tiles of a wider matrix lie scattered over so many pages that more rows are better multiplied with the whole, and
# products with a deeper one may be divided among BLAS threads, which tiles are not.
_WIDEST, _DEEPEST = 256, 512


class Packed(NamedTuple):
    """A matrix (D, F) by columns: tiles (count, D, columns), each in one piece, and the columns that are left over."""

    tiles: Array
    rest: Array


def pack(weight: Array, columns: int = _COLUMNS, empty: Empty = np.empty) -> Packed:
    """Copy a matrix tile by tile, where a dozen products or more follow.

    columns: of a tile; 0 for a single one, the matrix row after row. Memory that begins with a line of the cache makes
    the products of tiles a tenth faster.
    """
    parts = _divided(weight, columns or weight.shape[1])
    copies = Packed(*(empty(part.shape, part.dtype) for part in parts))
    for copy, part in zip(copies, parts, strict=True):
        copy[...] = part
    return copies


def product_calls(
    x: Array, weight: Array | Packed | Int8Matrix, out: Array, rows: int = _ROWS
) -> Iterator[Callable[[], Array]]:
    """Yield the calls of `np.matmul` that it takes to have out = x W, on views of the three.

    Shapes: x (N, D), weight (D, F), out (N, F).  rows: of a tile, at most.
    """
    if isinstance(weight, Packed):
        tiles, rest = weight
    elif isinstance(weight, Int8Matrix) or not (columns := _tile_columns(len(x), weight)):
        yield partial(np.matmul, x, weight, out)
        return
    else:
        tiles, rest = _divided(weight, columns)
    tiled = len(tiles) * tiles.shape[2]
    if tiled:  # from copies, in an order in which a tile is read once for all rows
        yield from _by_rows(x, tiles, out[:, :tiled], rows, "C" if isinstance(weight, Packed) else "K")
    if tiled < out.shape[1]:
        yield partial(np.matmul, x, rest, out[:, tiled:])


def product(x: Array, weight: Array | Packed | Int8Matrix, out: Array) -> Array:
    """out = x W.  Shapes: x (N, D), weight (D, F), out (N, F)."""
    for call in product_calls(x, weight, out):
        call()
    return out


def _tile_columns(rows: int, weight: Array) -> int:
    """Return the number of columns of a tile; 0 where the whole matrix is better multiplied at once."""
    depth, width = weight.shape
    if weight.strides[0] < weight.strides[1]:
        return _COLUMNS_TRANSPOSED if 1 < rows <= _FEW_ROWS else 0
    return _COLUMNS if rows > 1 and (rows <= _FEW_ROWS or (width <= _WIDEST and depth <= _DEEPEST)) else 0


def _divided(weight: Array, columns: int) -> Packed:
    """Views of all tiles of a matrix, and of the columns that are left over."""
    whole = weight.shape[1] - weight.shape[1] % columns
    return Packed(_tiles(weight[:, :whole], columns), weight[:, whole:])


def _tiles(weight: Array, columns: int) -> Array:
    """A view of (D, F) as (F / columns, D, columns)."""
    depth, width = weight.shape
    return weight.reshape(depth, width // columns, columns).swapaxes(0, 1)


def _by_rows(x: Array, tiles: Array, out: Array, rows: int, order: str) -> Iterator[Callable[[], Array]]:
    """Multiply by all tiles of a matrix: rows in tiles too, so that products are small, and what is left once more."""
    (count, depth), columns = x.shape, tiles.shape[2]
    most = count if len(tiles) == 1 else max(1, min(rows, _SMALL_PRODUCT // max(depth * columns, 1)))
    if count <= most:
        yield partial(np.matmul, x, tiles, _tiles(out, columns))
        return
    height = min(range(most, most // 2, -1), key=lambda height: count % height)
    whole = count - count % height
    stacked = out[:whole].reshape(whole // height, height, len(tiles), columns).transpose(2, 0, 1, 3)
    yield partial(np.matmul, x[:whole].reshape(1, -1, height, depth), tiles[:, None], stacked, order=order)
    if whole < count:
        yield partial(np.matmul, x[whole:], tiles, _tiles(out[whole:], columns))


def linear(x: Array, weight: Array, bias: Array | None, empty: Empty = np.empty) -> tuple[Array, Saved]:
    """Every output is a weighted sum of all inputs, plus a bias:

        y = x W + b

    b is left out where it is None.
    Shapes: x (N, D), weight (D, F), bias (F,) -> y (N, F).
    """
    y = product(x, weight, empty((len(x), weight.shape[1]), x.dtype))
    if bias is not None:
        y += bias
    return y, (x, weight, bias is not None)


def linear_backward(
    dy: Array, saved: Saved, empty: Empty = np.empty, dweight: Array | None = None
) -> tuple[Array, Array, Array | None]:
    """Every row used the same W and b, so their gradients are sums over rows:

        dx = dy Wᵀ        dW = xᵀ dy        db = Σ_n dy_n

    Returns dx (N, D), dweight (D, F), dbias (F,) or None; dweight is written to the array given, if one is.
    """
    x, weight, has_bias = saved
    dx = product(dy, weight.T, empty(x.shape, x.dtype))
    dweight = np.matmul(x.T, dy, out=empty_like(weight, empty) if dweight is None else dweight)
    return dx, dweight, sum_rows(dy) if has_bias else None

"""The affine map y = x W + b, and the matrix product that it is made of.

BLAS packs both operands of a large product anew, which pays where many rows use what was packed. With few rows, as in
a decoding step, it takes longer than the arithmetic. Small products it computes straight from where the operands lie.
So a large product of few rows is divided into tiles of some rows and columns, views all of them, that one call of
`np.matmul` goes through.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, empty_like, sum_rows
from toolkit.functional.int8 import Int8Matrix

# OpenBLAS packs nothing for products of up to 100³ multiplications.
_SMALL_PRODUCT = 1_000_000
# Columns of a tile: with fewer the results are written in pieces too small, with more nothing is gained.
_COLUMNS, _FEWER_COLUMNS = 64, 32
# Rows of a tile, at most, and fewer than which are not worth it where there are more.
_MOST_ROWS, _LEAST_ROWS = 32, 16
# A matrix that lies transposed is read along its columns: with more rows than this, tiles should be narrow.
_ROWS_TRANSPOSED = 8
# With more rows than this, packing a matrix that lies transposed pays.
_MANY_ROWS = 192
# Tiles of a wider matrix lie scattered over so many pages that many rows are better multiplied with the whole.
_WIDEST_SCATTERED = 2048
# Products of many rows with a deeper matrix may be divided among BLAS threads, which tiles are not.
_DEEPEST = 512

Operands = tuple[Array, Array, Array]


class Packed(NamedTuple):
    """A matrix (D, F) by columns: tiles (count, D, 64), each in one piece, and the columns that are left over."""

    tiles: Array
    rest: Array


def pack(weight: Array) -> Packed:
    """Copy a matrix tile by tile: worth it where a dozen products or more of 16 rows or more follow."""
    whole = weight.shape[1] - weight.shape[1] % _COLUMNS
    return Packed(np.ascontiguousarray(_tiles(weight[:, :whole], _COLUMNS)), np.ascontiguousarray(weight[:, whole:]))


def worth_packing(weight: Array, rows: int) -> bool:
    """True where tiles of a matrix (D, F) and of this many rows are small products."""
    return weight.shape[1] >= _COLUMNS and _tile_rows(rows, len(weight), _COLUMNS) > 0


def product_operands(x: Array, weight: Array | Packed | Int8Matrix, out: Array) -> Iterator[Operands]:
    """Yield the operands of each call of `np.matmul` that it takes to have out = x W: views of the three.

    Shapes: x (N, D), weight (D, F), out (N, F).
    """
    if isinstance(weight, Packed):
        whole = len(weight.tiles) * _COLUMNS
        if whole:
            yield from _by_rows(x, weight.tiles, out[:, :whole])
        if whole < out.shape[1]:
            yield x, weight.rest, out[:, whole:]
        return
    if isinstance(weight, Int8Matrix):
        yield x, weight, out
        return
    columns = _tile_columns(len(x), weight)
    whole = 0 if columns == 0 else out.shape[1] - out.shape[1] % columns
    if whole:
        yield from _by_rows(x, _tiles(weight[:, :whole], columns), out[:, :whole])
    if whole < out.shape[1]:
        yield x, weight[:, whole:], out[:, whole:]


def product(x: Array, weight: Array | Packed | Int8Matrix, out: Array) -> Array:
    """out = x W.  Shapes: x (N, D), weight (D, F), out (N, F)."""
    for operands in product_operands(x, weight, out):
        np.matmul(*operands)
    return out


def _tile_columns(rows: int, weight: Array) -> int:
    """Return the number of columns of a tile; 0 where the whole matrix is better multiplied at once."""
    depth, width = weight.shape
    transposed = weight.strides[0] < weight.strides[1]
    if rows == 1 or (rows > _MOST_ROWS and (width > _WIDEST_SCATTERED or depth > _DEEPEST)):
        return 0
    if rows > _ROWS_TRANSPOSED and transposed:
        return _FEWER_COLUMNS if rows <= _MANY_ROWS else 0
    return next((each for each in (_COLUMNS, _FEWER_COLUMNS) if _tile_rows(rows, depth, each)), 0)


def _tile_rows(rows: int, depth: int, columns: int) -> int:
    """Return the largest number of rows of a tile; 0 where they would be too few."""
    most = min(_MOST_ROWS, _SMALL_PRODUCT // max(depth * columns, 1))
    return most if most >= min(rows, _LEAST_ROWS) else 0


def _tiles(weight: Array, columns: int) -> Array:
    """A view of (D, F) as (F / columns, D, columns)."""
    depth, width = weight.shape
    return weight.reshape(depth, width // columns, columns).swapaxes(0, 1)


def _by_rows(x: Array, tiles: Array, out: Array) -> Iterator[Operands]:
    """The operands with all tiles of a matrix: rows in tiles too, and what is left of them once more."""
    (rows, depth), columns = x.shape, tiles.shape[2]
    most = _tile_rows(rows, depth, columns) or _MOST_ROWS
    if rows <= most:
        yield x, tiles, _tiles(out, columns)
        return
    height = min(range(most, most // 2, -1), key=lambda height: rows % height)
    whole = rows - rows % height
    stacked = out[:whole].reshape(whole // height, height, len(tiles), columns).transpose(2, 0, 1, 3)
    yield x[:whole].reshape(1, whole // height, height, depth), tiles[:, None], stacked
    if whole < rows:
        yield x[whole:], tiles, _tiles(out[whole:], columns)


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


def linear_backward(dy: Array, saved: Saved, empty: Empty = np.empty) -> tuple[Array, Array, Array | None]:
    """Every row used the same W and b, so their gradients are sums over rows:

        dx = dy Wᵀ        dW = xᵀ dy        db = Σ_n dy_n

    Returns dx (N, D), dweight (D, F), dbias (F,) or None.
    """
    x, weight, has_bias = saved
    dx = product(dy, weight.T, empty(x.shape, x.dtype))
    dweight = np.matmul(x.T, dy, out=empty_like(weight, empty))
    return dx, dweight, sum_rows(dy) if has_bias else None

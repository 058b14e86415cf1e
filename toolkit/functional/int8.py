"""Matrices in int8, for products that are not differentiated: a quarter of the bytes to read, and integer arithmetic.

Quantisation is symmetric and dynamic (vector-wise, as in Dettmers et al. 2022, section 2.1). Every column of W, and
every row of the x that it multiplies, is divided by its largest magnitude and rounded to whole 127ths of that:

    y_nf = a_n b_f / 127² · Σ_d X_nd V_df      with a_n = max_d |x_nd|, X = round(127 x / a), and so b and V of W

The sum of integers is exact: a row has the same result whatever rows are beside it. A row that is not finite has a
result that is not. NumPy multiplies integers without BLAS, so a library does this one product.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array

_MOST = 127  # of the integers: -128 is left out, so that there are as many of both signs
_NEARLY_ZERO = 1e-30  # a column of no larger number is one of zeros
_DEEPEST = 2**31 // (_MOST * 128)  # matrix of which no sum is beyond int32, -128 of a damaged file included
_ROWS = 64  # are multiplied at once, so that what they are quantised to stays in the cache

Multiply = Callable[..., None]


class Int8Matrix:
    """A matrix (D, F) in int8, with a scale for every column: `np.matmul(x, matrix, out=y)` multiplies by it.

    Converted to an array it has the numbers that it stands for. Its `T` is a table (F, D), in which rows can be looked
    up, and multiplies nothing but as its own `T`.
    """

    def __init__(self, weight: Array, keeps_rows: bool = False):
        """Quantise a matrix.  keeps_rows: of its `T`, to look them up.

        Raises ConfigError where the library is missing, and for a matrix that is too deep.
        """
        largest = np.abs(weight).max(axis=0)
        integers = weight.T * (_MOST / np.maximum(largest, _NEARLY_ZERO))[:, None]
        np.rint(integers, integers)
        self._set(integers.astype(np.int8, order="C"), largest / _MOST, keeps_rows)

    @classmethod
    def stored(cls, integers: Array, scales: Array) -> "Int8Matrix":
        """Make what `parts` gave: a matrix, or a table whose rows are kept."""
        matrix, is_table = object.__new__(cls), scales.shape == (len(integers), 1)
        rows = integers if is_table else integers.T
        matrix._set(np.array(rows, order="C"), np.array(scales.reshape(-1)), is_table)
        return matrix.T if is_table else matrix

    def _set(self, rows: Array, scales: Array, keeps_rows: bool) -> None:
        """Take the integers of the table, (F, D), and their scales, (F,)."""
        if rows.shape[1] > _DEEPEST:
            raise ConfigError(f"a product over {rows.shape[1]} numbers is too long for int8: use float32")
        self._library, self._is_table = _library(), False
        self._packed, self._rows = self._library.dots_pack(rows), rows if keeps_rows else None
        self._scales, self._sum_scales = scales, scales / _MOST
        self.shape, self.dtype = rows.shape[::-1], scales.dtype
        self.nbytes = self._packed.nbytes + 2 * scales.nbytes + (rows.nbytes if keeps_rows else 0)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def T(self) -> "Int8Matrix":  # noqa: N802
        twin = object.__new__(Int8Matrix)
        vars(twin).update(vars(self), shape=self.shape[::-1], _is_table=not self._is_table)
        return twin

    def scaled(self, factors: Array) -> "Int8Matrix":
        """Return W diag(factors), of the same integers.  Shapes: factors (F,)."""
        twin = object.__new__(Int8Matrix)
        vars(twin).update(vars(self), _scales=self._scales * factors, _sum_scales=self._sum_scales * factors)
        return twin

    def look_up(self, ids: Array, out: Array) -> None:
        """Write rows of a table to `out`.  Shapes: ids (N,), out (N, D)."""
        np.multiply(self._rows.take(ids, 0, mode="clip"), self._scales.take(ids, mode="clip")[:, None], out)

    def parts(self) -> tuple[Array, Array]:
        """Give the integers, and the scales that they are multiplied with: (1, F) of a matrix, (F, 1) of a table."""
        if self._rows is not None:
            integers = self._rows.T
        else:  # what is packed comes back as a product with ones
            ones = np.eye(self.shape[self._is_table], dtype=np.int8)
            integers = np.asarray(self._library.dots_packed(ones, self._packed)).astype(np.int8)
        return (integers.T, self._scales[:, None]) if self._is_table else (integers, self._scales[None])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        integers, scales = self.parts()
        return (integers * scales).astype(dtype or self.dtype)

    def __reduce__(self) -> tuple:
        return Int8Matrix.stored, self.parts()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Array] | None = None) -> Array:
        if ufunc is not np.matmul or method != "__call__" or inputs[1] is not self:
            return NotImplemented
        if self._is_table:
            raise ConfigError("a model in int8 is not trained: load it in float32")
        x = inputs[0]
        y = out[0] if out else np.empty((len(x), self.shape[1]), x.dtype)
        found = np.ascontiguousarray(y)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            for begin in range(0, len(x), _ROWS):
                part = slice(begin, begin + _ROWS)
                scratch = [np.empty(*each) for each in self.scratch(len(x[part]), x.dtype.type)]
                self.prepared(found[part], None, *scratch)(x[part])
        if found is not y:
            y[...] = found
        return y

    def scratch(self, rows: int, dtype: type) -> list[tuple[tuple[int, int], Any]]:
        """List shape and type of the arrays that the product of this many rows needs beside its result."""
        depth, width = self.shape
        needed = [((rows, depth), dtype), ((rows, depth), np.int8)]
        return needed if rows > 1 and dtype is np.float32 else [*needed, ((rows, width), np.int32)]

    def prepared(
        self, y: Array, bias: Array | None, magnitudes: Array, integers: Array, sums: Array | None = None
    ) -> Multiply:
        """Prepare a function of x and a factor that sets y = factor · x W + bias, in the memory of these arrays.

        y: in one piece. The arrays behind the bias are those of `scratch`: without sums, y is their memory too. The
        factor is a number for one row and an array (N, 1) for several. Rows that are 0 or smaller than any scale make
        NumPy warn, and are right.
        """
        multiplied, packed = self._library.dots_packed, self._packed
        sums = y.view(np.int32) if sums is None else sums
        tensor = self._library.from_pointer(sums.ctypes.data, sums.shape, "int32", owner=sums)
        scratch = magnitudes, integers, partial(multiplied, integers, packed, out=tensor), sums
        return (_one_row if len(y) == 1 else _several_rows)(y, *scratch, self._sum_scales, bias)


def _one_row(
    y: Array,
    magnitudes: Array,
    integers: Array,
    multiply: Callable[[], object],
    sums: Array,
    scales: Array,
    bias: Array | None,
) -> Multiply:
    """Prepare the product of one row: a number is cheaper than an array of one, and equal shapes than a row of them."""
    number, greatest = magnitudes.item, magnitudes.argmax
    # ten look-ups in a module, in each of some twenty products, are 2 % of a step
    absolute, times, rint, copyto, add = np.absolute, np.multiply, np.rint, np.copyto, np.add
    scales, bias = scales[None], None if bias is None else bias[None]

    def product(x: Array, factor: float = 1.0) -> None:
        absolute(x, magnitudes)
        largest = number(greatest())
        times(x, _MOST / largest if largest else 0.0, magnitudes)
        rint(magnitudes, magnitudes)
        copyto(integers, magnitudes, casting="unsafe")
        multiply()
        copyto(y, sums, casting="unsafe")
        times(y, scales, y)
        times(y, largest * factor, y)
        if bias is not None:
            add(y, bias, y)

    return product


def _several_rows(
    y: Array,
    magnitudes: Array,
    integers: Array,
    multiply: Callable[[], object],
    sums: Array,
    scales: Array,
    bias: Array | None,
) -> Multiply:
    """Prepare the product of several rows.  y and sums: may be the same memory, of one number after the other."""
    rows, depth = magnitudes.shape
    places, begins = np.empty(rows, np.intp), np.arange(0, magnitudes.size, depth)
    largest, factors = np.empty((2, rows, 1), magnitudes.dtype)
    floats, whole = y.reshape(-1), sums.reshape(-1)
    greatest, numbers, of_rows = magnitudes.argmax, magnitudes.reshape(-1).take, largest.reshape(-1)

    def product(x: Array, factor: Array | None = None) -> None:
        np.absolute(x, magnitudes)
        # argmax is several times as fast as max, and NaN is the largest of all
        np.add(greatest(1, places), begins, places)
        numbers(places, 0, of_rows, "clip")
        np.divide(_MOST, largest, factors)
        np.multiply(x, factors, magnitudes)
        np.rint(magnitudes, magnitudes)
        np.copyto(integers, magnitudes, casting="unsafe")
        multiply()
        np.copyto(floats, whole, casting="unsafe")
        np.multiply(y, scales, y)
        np.multiply(y, largest if factor is None else np.multiply(largest, factor, largest), y)
        if bias is not None:
            np.add(y, bias, y)

    return product


def _library() -> Any:
    """Import the library that multiplies matrices of int8.  Raises ConfigError where it is missing."""
    try:
        import numkong
    except ModuleNotFoundError as error:
        raise ConfigError(
            "int8 needs the library numkong: pip install 'numkong>=7.8,<8', the extra fast; float32 needs none"
        ) from error
    return numkong

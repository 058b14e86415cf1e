"""Matrices in int8, for products that are not differentiated: a quarter of the bytes to read, and integer arithmetic.

Quantisation is symmetric and dynamic (vector-wise, as in Dettmers et al. 2022, section 2.1). Every column of W, and
every row of the x that it multiplies, is divided by its largest magnitude and rounded to whole 127ths of that:

    y_nf = a_n b_f / 127² · Σ_d X_nd V_df      with a_n = max_d |x_nd|, X = round(127 x / a), and so b and V of W

The sum of integers is exact: a row has the same result whatever rows are beside it. A row that is not finite has a
result that is not. NumPy multiplies integers without BLAS, so a library does this one product.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array

_MOST = 127  # of the integers: -128 is left out, so that there are as many of both signs
_NEARLY_ZERO = 1e-30  # is added to largest magnitudes, which may be 0
_DEEPEST = 2**31 // _MOST**2  # matrix of which no sum is beyond int32
_ROWS = 64  # are multiplied at once, so that what they are quantised to stays in the cache

Multiply = Callable[[Array, Array], None]


class Int8Matrix:
    """A matrix (D, F) in int8, with a scale for every column: `np.matmul(x, matrix, out=y)` multiplies by it.

    Converted to an array it has the numbers that it stands for. Its `T` has the shape of a table (F, D), and multiplies
    nothing but as its own `T`.
    """

    def __init__(self, weight: Array):
        """Raises ConfigError where the library is missing, and for a matrix that is too deep."""
        if len(weight) > _DEEPEST:
            raise ConfigError(f"a product over {len(weight)} numbers is too long for int8: use float32")
        largest = np.abs(weight).max(axis=0)
        integers = np.rint(weight * (_MOST / (largest + largest.dtype.type(_NEARLY_ZERO))))
        self._set(integers.astype(np.int8), largest / _MOST, False)

    def _set(self, integers: Array, scales: Array, is_table: bool) -> None:
        self._library, self._is_table = _library(), is_table
        self._packed = self._library.dots_pack(np.ascontiguousarray(integers.T))
        self._scales, self._sum_scales = scales, scales / _MOST
        self.shape, self.dtype = integers.shape[::-1] if is_table else integers.shape, scales.dtype
        self.nbytes = self._packed.nbytes + 2 * scales.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def T(self) -> "Int8Matrix":  # noqa: N802
        twin = object.__new__(Int8Matrix)
        vars(twin).update(vars(self), shape=self.shape[::-1], _is_table=not self._is_table)
        return twin

    def _integers(self) -> Array:
        """Give the integers, (D, F): they are packed, and come back as a product with ones."""
        ones = np.eye(self.shape[self._is_table], dtype=np.int8)
        return np.asarray(self._library.dots_packed(ones, self._packed)).astype(np.int8)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        values = (self._integers() * self._scales).astype(dtype or self.dtype)
        return values.T if self._is_table else values

    def __reduce__(self) -> tuple:
        return _restored, (self._integers(), self._scales, self._is_table)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Array] | None = None) -> Array:
        if ufunc is not np.matmul or method != "__call__" or inputs[1] is not self:
            return NotImplemented
        if self._is_table:
            raise ConfigError("a model in int8 is not trained: load it in float32")
        x = inputs[0]
        found = out[0] if out else np.empty((len(x), self.shape[1]), x.dtype)
        for begin in range(0, len(x), _ROWS):
            part = x[begin : begin + _ROWS]
            if begin == 0 or len(part) < _ROWS:
                multiply = self.prepared(*(np.empty(*each) for each in self.scratch(len(part), x.dtype)))
            multiply(part, found[begin : begin + len(part)])
        return found

    def scratch(self, rows: int, dtype: type) -> list[tuple[tuple[int, int], Any]]:
        """List shape and type of the arrays that the product of this many rows needs."""
        depth, width = self.shape
        return [((rows, depth), dtype), ((rows, depth), np.int8), ((rows, width), np.int32)]

    def prepared(self, magnitudes: Array, integers: Array, sums: Array) -> Multiply:
        """Prepare a function of x and y that sets y = x W, in the memory of these arrays; see `scratch`."""
        multiplied, packed, scales = self._library.dots_packed, self._packed, self._sum_scales
        tensor = self._library.from_pointer(sums.ctypes.data, sums.shape, "int32", owner=sums)
        flat, begins = magnitudes.reshape(-1), np.arange(0, magnitudes.size, self.shape[0])
        tiny = magnitudes.dtype.type(_NEARLY_ZERO)

        def multiply(x: Array, y: Array) -> None:
            np.absolute(x, magnitudes)
            if len(begins) == 1:  # a number is cheaper than an array of one
                largest = flat[flat.argmax()]
            else:  # argmax is several times as fast as max, and NaN is the largest of all
                largest = flat.take(magnitudes.argmax(axis=1) + begins)[:, None]
            np.multiply(x, _MOST / (largest + tiny), magnitudes)
            np.rint(magnitudes, magnitudes)
            np.copyto(integers, magnitudes, casting="unsafe")
            multiplied(integers, packed, out=tensor)
            np.copyto(y, sums, casting="unsafe")
            np.multiply(y, scales, y)
            np.multiply(y, largest, y)

        return multiply


def _restored(integers: Array, scales: Array, is_table: bool) -> Int8Matrix:
    matrix = object.__new__(Int8Matrix)
    matrix._set(integers, scales, is_table)
    return matrix


def _library() -> Any:
    """Import the library that multiplies matrices of int8.  Raises ConfigError where it is missing."""
    try:
        import numkong
    except ModuleNotFoundError as error:
        raise ConfigError("int8 needs the library numkong: pip install 'numkong>=7.8,<8', the extra fast") from error
    return numkong

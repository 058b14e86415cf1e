"""Orthogonalization: the matrix with orthogonal rows or columns that is closest to a given one, nearly.

That is U Vᵀ of its singular value decomposition U S Vᵀ: Muon takes steps of this form. Singular values need not become
exactly 1 for it. Jordan et al. (2024) let five rounds of a polynomial bring them to 0.7 to 1.2, fifteen products of
matrices; one round of a rational function, which has an inverse in it, does the same for a third of the time.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from toolkit.functional.arrays import Array

# A matrix of this size is not divided further to be inverted: NumPy's own inverse is as fast.
_SMALL = 24


def orthogonalized(matrices: Sequence[Array], lengths: Sequence[float], memory: Array | None = None) -> Iterator[Array]:
    """Yield nearly U Vᵀ of the singular value decomposition U S Vᵀ of each matrix, times its length.

    U Vᵀ = X (Xᵀ X)^-½ = (X Xᵀ)^-½ X, so that between two products with X everything is as small as its smaller side,
    which is the same for all matrices. memory: what each result is written to when it is asked for; without it they
    are new arrays.
    """
    size = min(matrices[0].shape)
    squares = np.empty((len(matrices), size, size), matrices[0].dtype)
    for x, square in zip(matrices, squares, strict=True):
        np.matmul(*((x.T, x) if x.shape[1] == size else (x, x.T)), out=square)
    for x, root in zip(matrices, inverse_roots(squares, np.array(lengths, squares.dtype)), strict=True):
        out = None if memory is None else memory[: x.size].reshape(x.shape)
        yield np.matmul(*((x, root) if x.shape[1] == size else (root, x)), out=out)


def inverse_roots(squares: Array, lengths: Array) -> Array:
    """Return nearly A^-½ of each A = Xᵀ X or X Xᵀ, times its length: (K, m, m), (K,) -> (K, m, m).  A is overwritten.

    One step of Halley's iteration, dynamically weighted (Nakatsukasa, Bai and Gygi 2010, section 3). It sends a
    singular value σ of X to

        f(σ) = σ (a + b σ²) / (1 + c σ²) = σ (b / c + (a - b / c) / (1 + c σ²))

    and of all a, b and c, theirs make the least value of f between l and 1 the largest while none is above 1. So A^-½
    is nearly (b / c) 1 + (a - b / c) (1 + c A)⁻¹. With l = 0.01, and with both ends made equally far from 1, all σ
    from 0.01 to 1 become 0.67 to 1.33, and one below 0.01 becomes 72 times as large.

    The largest σ is made at most 1 by division of A by its Frobenius norm; of that it is close to 1, for small ones
    add little to a sum of σ⁴: at least m^-¼, where all are equal. The inverse is that of eigenvalues between 1 and 765.
    """
    count, size, _ = squares.shape
    trace = _diagonals(squares).sum(axis=1) + np.finfo(squares.dtype).tiny
    squares *= (1 / trace)[:, None, None]  # so that no sum of squares overflows or vanishes
    flat = squares.reshape(count, -1)
    norm = np.maximum(np.sqrt(np.vecdot(flat, flat)), 1 / size)  # which it is at least, where A is not 0
    a, b, c, centre = _HALLEY
    squares *= (c / norm)[:, None, None]
    squares[np.isnan(norm)] = 0  # LAPACK refuses it; the result is not a number either way
    _diagonals(squares)[:] += 1
    roots = inverses(squares)
    factors = lengths * centre / (np.sqrt(norm) * np.sqrt(trace))
    roots *= ((a - b / c) * factors)[:, None, None]
    _diagonals(roots)[:] += (b / c * factors)[:, None]
    return roots


def _halley(least: float) -> tuple[float, float, float, float]:
    """Return a, b and c for singular values from `least` to 1, and what brings the middle of their images to 1."""
    square = least * least
    root = math.sqrt(1 + (4 * (1 - square) / square**2) ** (1 / 3))
    a = root + math.sqrt(8 - 4 * (root * root - 1) + 8 * (2 - square) / (square * root)) / 2
    b = (a - 1) ** 2 / 4
    c = a + b - 1
    return a, b, c, 2 / (1 + least * (a + b * square) / (1 + c * square))


_HALLEY = _halley(0.01)


def _diagonals(matrices: Array) -> Array:
    """View the diagonals of (K, m, m) as (K, m)."""
    return matrices.reshape(len(matrices), -1)[:, :: matrices.shape[1] + 1]


def inverses(matrices: Array) -> Array:
    """Return the inverses of symmetric matrices with positive eigenvalues, (K, m, m) -> (K, m, m).

    NumPy's own works in float64 and, for these sizes, at a tenth of the speed of products.
    """
    factors, result = inverse_factors(matrices), np.empty_like(matrices)
    first, second = _halves(matrices)
    left, corner, last = factors[:, :, first], factors[:, second, first], factors[:, second, second]
    np.matmul(left.swapaxes(1, 2), left, out=result[:, first, first])
    np.matmul(last.swapaxes(1, 2), last, out=result[:, second, second])
    result[:, first, second] = np.matmul(last.swapaxes(1, 2), corner, out=result[:, second, first]).swapaxes(1, 2)
    return result


def inverse_factors(matrices: Array) -> Array:
    """Return G with Gᵀ G = A⁻¹ for symmetric matrices A with positive eigenvalues, (K, m, m) -> (K, m, m).

    Cholesky's factor of A, inverted, but for the signs of rows: by halves, so that almost all of it is products.

        A = ⎡P  W⎤        G = ⎡     p   0⎤        pᵀ p = P⁻¹,  q = p W,  sᵀ s = (R - qᵀ q)⁻¹
            ⎣Wᵀ R⎦            ⎣s qᵀ p  -s⎦

    It is as exact as Cholesky's method is: the inverses of P and R themselves would lose digits with every halving.
    """
    if matrices.shape[1] <= _SMALL:
        return np.linalg.inv(np.linalg.cholesky(matrices))
    result, (first, second) = np.zeros_like(matrices), _halves(matrices)
    p = inverse_factors(matrices[:, first, first])
    q = p @ matrices[:, first, second]
    transposed = q.swapaxes(1, 2)
    s = inverse_factors(matrices[:, second, second] - transposed @ q)
    result[:, first, first] = p
    np.matmul(s, transposed @ p, out=result[:, second, first])
    np.negative(s, out=result[:, second, second])
    return result


def _halves(matrices: Array) -> tuple[slice, slice]:
    size = matrices.shape[1]
    return slice(size // 2), slice(size // 2, size)

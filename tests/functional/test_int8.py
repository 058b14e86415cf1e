"""Products in int8 against their formula, in plain NumPy."""

import pickle

import numpy as np
import pytest

from toolkit.errors import ConfigError
from toolkit.functional.embedding import embedding
from toolkit.functional.int8 import Int8Matrix
from toolkit.functional.linear import linear, linear_backward, product

pytest.importorskip("numkong", reason="numkong, which multiplies in int8, is not installed")

SIZES = [(1, 1, 1), (1, 37, 5), (3, 64, 65), (64, 16, 130), (130, 259, 33)]


def rounded(x, axis):
    """x in whole 127ths of its largest magnitudes along an axis: the integers, and what each counts."""
    scales = np.abs(x).max(axis=axis, keepdims=True) / 127
    return np.rint(x / np.where(scales == 0, 1, scales)), scales


def drawn(rows, depth, width, dtype=np.float64):
    generator = np.random.default_rng([rows, depth, width])
    spread = np.exp(generator.standard_normal((rows, 1)) * 3)  # rows of very different sizes
    return (generator.standard_normal((rows, depth)) * spread).astype(dtype), generator.standard_normal(
        (depth, width)
    ).astype(dtype)


@pytest.mark.parametrize(("rows", "depth", "width"), SIZES)
def test_a_product_is_its_formula(rows, depth, width):
    x, weight = drawn(rows, depth, width)
    (x_integers, x_scales), (integers, scales) = rounded(x, 1), rounded(weight, 0)
    matrix = Int8Matrix(weight)
    expected = (x_integers @ integers) * x_scales * scales
    np.testing.assert_allclose(product(x, matrix, np.empty((rows, width))), expected, rtol=1e-12, atol=0)
    np.testing.assert_allclose(np.asarray(matrix), integers * scales, rtol=1e-15)
    assert matrix.nbytes < weight.nbytes or depth * width < 4096  # a packed matrix has whole tiles


@pytest.mark.parametrize(("rows", "depth", "width"), SIZES)
def test_the_error_is_within_its_bound(rows, depth, width):
    """Each number is wrong by at most half of what an integer counts, so y by at most Σ |x| s/2 + |w| r/2 + rs/4."""
    x, weight = drawn(rows, depth, width, np.float32)
    found = linear(x, Int8Matrix(weight), None)[0]
    exact_x, exact_weight = x.astype(np.float64), weight.astype(np.float64)
    row, column = np.abs(exact_x).max(1, keepdims=True) / 127, np.abs(exact_weight).max(0) / 127
    bound = np.abs(exact_x).sum(1, keepdims=True) * column / 2 + np.abs(exact_weight).sum(0) * row / 2
    bound += depth * row * column / 4
    assert found.dtype == np.float32
    assert (np.abs(found - exact_x @ exact_weight) <= 1.00001 * bound).all()


def test_a_row_has_the_same_bits_alone_and_in_any_batch():
    x, weight = drawn(130, 96, 200, np.float32)
    matrix = Int8Matrix(weight)
    together = x @ matrix
    for count in (1, 2, 63, 65):
        assert np.array_equal(np.concatenate([x[n : n + count] @ matrix for n in range(0, 130, count)]), together)
    assert (x[:0] @ matrix).shape == (0, 200)
    assert np.array_equal(np.asfortranarray(x)[::2] @ matrix, together[::2])


@pytest.mark.parametrize("rows", [1, 3])
def test_a_factor_and_a_bias_are_taken_into_the_product(rows):
    x, weight = drawn(rows, 16, 8)
    matrix, bias, found = Int8Matrix(weight), weight[0], np.empty((rows, 8))
    factor = 0.25 if rows == 1 else np.array([[0.25], [-3], [1]])
    multiply = matrix.prepared(found, bias, *(np.empty(*each) for each in matrix.scratch(rows, np.float64)))
    multiply(x, factor)
    np.testing.assert_allclose(found, factor * (x @ matrix) + bias, rtol=1e-14)
    multiply(x)
    np.testing.assert_allclose(found, x @ matrix + bias, rtol=1e-14)


def test_a_scaled_matrix_has_the_same_integers():
    x, weight = drawn(3, 16, 8)
    factors = np.linspace(-1, 1, 8)
    matrix = Int8Matrix(weight)
    np.testing.assert_allclose(x @ matrix.scaled(factors), (x @ matrix) * factors, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(matrix.scaled(factors)), np.asarray(matrix) * factors, rtol=1e-14)
    assert np.array_equal(np.asarray(matrix), np.asarray(Int8Matrix(weight)))


def test_rows_and_columns_of_zeros_give_zeros():
    x, weight = drawn(4, 16, 8, np.float32)
    x[1], weight[:, 3] = 0, 0
    x[2] = 1e-38  # smaller than what any scale can divide by
    x[3], weight[:, 4] = 1e-44, 1e-44
    found = x @ Int8Matrix(weight)
    assert np.array_equal(found, np.concatenate([x[n : n + 1] @ Int8Matrix(weight) for n in range(4)]))
    assert (found[1] == 0).all()
    assert (found[:, 3] == 0).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", [1, 3])
def test_what_is_not_finite_stays_so(rows, value):
    """A damaged model is told by its results: a NaN must not become an integer."""
    x, weight = drawn(rows, 16, 8, np.float32)
    x[0, 5] = value
    with np.errstate(invalid="ignore"):
        found = x @ Int8Matrix(weight)
    assert not np.isfinite(found[0]).any()
    assert np.isfinite(found[1:]).all()


def test_a_table_is_the_matrix_transposed():
    x, weight = drawn(3, 16, 8)
    matrix = Int8Matrix(weight)
    assert (matrix.T.shape, len(matrix.T), matrix.T.T.shape) == ((8, 16), 8, (16, 8))
    assert np.array_equal(np.asarray(matrix.T), np.asarray(matrix).T)
    assert np.array_equal(x @ matrix.T.T, x @ matrix)


def test_rows_of_a_table_are_those_of_the_numbers_that_it_stands_for():
    table = drawn(9, 16, 8, np.float32)[0]
    matrix, ids = Int8Matrix(table.T, keeps_rows=True).T, np.array([3, 0, 8, 3])
    assert np.array_equal(embedding(ids, matrix, 2.0)[0], 2 * np.asarray(matrix)[ids])
    np.testing.assert_allclose(np.asarray(matrix), table, atol=np.abs(table).max() / 254)
    assert np.abs(np.asarray(matrix) - table).max(axis=1) == pytest.approx(np.abs(table).max(axis=1) / 254, rel=0.3)


def test_a_pickled_matrix_is_the_same():
    x, weight = drawn(3, 40, 70, np.float32)
    for matrix in (Int8Matrix(weight), Int8Matrix(weight[:, :1]), Int8Matrix(weight).T, Int8Matrix(weight, True).T):
        copy = pickle.loads(pickle.dumps(matrix))
        assert copy.shape == matrix.shape
        assert np.array_equal(np.asarray(copy), np.asarray(matrix))
    assert np.array_equal(x @ copy.T, x @ matrix.T)


def test_a_sum_that_could_overflow_is_refused():
    """The deepest matrix that is taken sums up to the largest number of int32, also with -128, which files may hold."""
    deepest = np.ones((2**31 // (127 * 128), 1), np.float32)
    matrix = Int8Matrix.stored(np.full(deepest.shape, -128, np.int8), np.ones((1, 1), np.float32))
    assert (deepest.T @ matrix)[0, 0] == pytest.approx(-128 * len(deepest), rel=1e-6)
    assert (deepest.T @ Int8Matrix(deepest))[0, 0] == pytest.approx(len(deepest), rel=1e-6)
    with pytest.raises(ConfigError, match="is too long for int8"):
        Int8Matrix(np.ones((len(deepest) + 1, 1), np.float32))


def test_nothing_is_trained_through_it():
    x, weight = drawn(3, 16, 8, np.float32)
    y, saved = linear(x, Int8Matrix(weight), None)
    with pytest.raises(ConfigError, match="a model in int8 is not trained: load it in float32"):
        linear_backward(y, saved)

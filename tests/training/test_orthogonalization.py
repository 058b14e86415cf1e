"""Orthogonalization against singular values and the iteration as its paper has it, in both precisions."""

import numpy as np
import pytest

from toolkit.training import orthogonalization
from toolkit.training.orthogonalization import inverses, orthogonalized


def halley(x: np.ndarray, least: float = 0.01) -> np.ndarray:
    """The step as the paper writes it, on a matrix whose singular values are at most 1, with its weights for `least`.

    They are those of Nakatsukasa, Bai and Gygi 2010, section 3; the values of `least` and 1 are moved to 1 - e, 1 + e.
    """
    d = (4 * (1 - least**2) / least**4) ** (1 / 3)
    a = (1 + d) ** 0.5 + 0.5 * (8 - 4 * d + 8 * (2 - least**2) / (least**2 * (1 + d) ** 0.5)) ** 0.5
    b = (a - 1) ** 2 / 4
    c = a + b - 1
    lowest = least * (a + b * least**2) / (1 + c * least**2)
    square = x.T @ x
    one = np.eye(len(square))
    return np.linalg.solve((one + c * square).T, (x @ (a * one + b * square)).T).T * 2 / (1 + lowest)


def with_lengths(rng: np.random.Generator, shape: tuple[int, int], lengths: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(rng.standard_normal(shape), full_matrices=False)
    return left * lengths @ right


SPECTRA = {
    "all equal": lambda count: np.ones(count),
    "evenly spread": lambda count: np.linspace(0.05, 1, count),
    "ill-conditioned": lambda count: np.geomspace(1, 1e-6, count),
    "one direction": lambda count: np.eye(count)[0],
    "low rank": lambda count: (np.arange(count) < -(-count // 8)) * 1.0,
}


@pytest.mark.parametrize("kind", SPECTRA)
@pytest.mark.parametrize("shape", [(1, 5), (4, 4), (6, 15), (15, 6), (64, 64), (51, 75), (130, 30), (5, 700)])
def test_every_direction_becomes_about_equally_long(shape, kind: str) -> None:
    """In both precisions, and whatever the size of the matrix is."""
    rng = np.random.default_rng(0)
    matrix = with_lengths(rng, shape, SPECTRA[kind](min(shape)))
    left, lengths, right = np.linalg.svd(matrix, full_matrices=False)
    normal = matrix / (lengths**4).sum() ** 0.25
    expected = halley(normal)
    for dtype, sizes, tolerance in ((np.float64, (1e-12, 1.0, 1e12), 1e-11), (np.float32, (1e-12, 3.0, 1e12), 1e-4)):
        for size in sizes:
            (found,) = orthogonalized([(matrix * size).astype(dtype)], [1.0])
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, atol=tolerance)
        reached = np.diag(left.T @ found @ right.T)[lengths >= 0.01 * (lengths**4).sum() ** 0.25]
        assert (reached > 0.67).all()
        assert (reached < 1.33).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_zero_or_nearly_so_goes_nowhere_far(dtype: type) -> None:
    """Zeros stay zeros, and what is too small to be squared does not become infinite."""
    rng = np.random.default_rng(0)
    for shape in ((3, 5), (40, 30)):
        small = (rng.standard_normal(shape) * np.finfo(dtype).tiny ** 0.75).astype(dtype)
        zero, tiny, usual = orthogonalized([np.zeros(shape, dtype), small, np.ones(shape, dtype)], [1.0] * 3)
        assert (zero == 0).all()
        assert np.abs(tiny).max() < 1
        np.testing.assert_allclose(usual, usual[0, 0], rtol=1e-3)


def test_what_overflows_is_no_number_and_spoils_no_other() -> None:
    """Training sees it then, and goes back."""
    huge, usual = np.full((30, 40), 1e30, np.float32), np.ones((30, 40), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        first, second = orthogonalized([huge, usual], [1.0, 1.0])
        third, fourth = orthogonalized([usual, huge * np.nan], [1.0, 1.0])
    assert np.isnan(first).all()
    assert np.isnan(fourth).all()
    assert second.tobytes() == third.tobytes()
    assert np.isfinite(second).all()


def test_the_weights_are_the_best() -> None:
    """Of all a, b and c: the error alternates, equally large at four places between l and 1 (Chebyshev's criterion)."""
    sigma = np.geomspace(0.01, 1, 20_001)
    lengths = np.array([halley(np.array([[each]]))[0, 0] for each in sigma[:: len(sigma) - 1]])
    a, b, c, centre = orthogonalization._HALLEY
    error = centre * sigma * (a + b * sigma**2) / (1 + c * sigma**2) - 1
    np.testing.assert_allclose(error[[0, -1]] + 1, lengths)
    size = np.abs(error).max()
    turns = [error[0], *error[1:-1][np.diff(np.sign(np.diff(error))) != 0], error[-1]]
    np.testing.assert_allclose(turns, [-size, size, -size, size], rtol=1e-6)
    assert size == pytest.approx(0.3286, abs=1e-4)


def test_a_matrix_becomes_the_same_in_any_company() -> None:
    """Bit for bit, so that it does not depend on how many workers share the maps."""
    rng = np.random.default_rng(3)
    for shape in ((64, 64), (30, 100), (129, 65)):
        stack = [rng.standard_normal(shape).astype(np.float32) for _ in range(5)]
        lengths = [0.5, 1.0, 2.0, 3.0, 4.0]
        together = [each.tobytes() for each in orthogonalized(stack, lengths)]
        memory = np.empty(stack[0].size, np.float32)
        assert [each.tobytes() for each in orthogonalized(stack, lengths, memory)] == together
        for matrix, length, expected in zip(stack, lengths, together, strict=True):
            (alone,) = orthogonalized([matrix], [length])
            assert alone.tobytes() == expected


@pytest.mark.parametrize("size", [1, 5, 24, 25, 50, 97, 128])
def test_inverses(size: int) -> None:
    """Exact to rounding times the ratio of the eigenvalues, for many small eigenvalues too."""
    rng = np.random.default_rng(4)
    turned = np.linalg.qr(rng.standard_normal((3, size, size)))[0]
    values = np.stack([np.geomspace(1, 765, size), 1 + 764 * rng.random(size), np.ones(size)])
    values[2, :2] = 765
    matrices = turned * values[:, None] @ turned.swapaxes(1, 2)
    expected = turned / values[:, None] @ turned.swapaxes(1, 2)
    np.testing.assert_allclose(inverses(matrices), expected, atol=1e-12)
    np.testing.assert_allclose(inverses(matrices.astype(np.float32)), expected, atol=2e-4)

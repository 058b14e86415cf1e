"""Rotary positions: rotations whose angle grows with the position."""

import math

import numpy as np
import pytest

from toolkit.functional.positions import (
    interpolated_frequencies,
    llama3_frequencies,
    rotary,
    rotary_backward,
    rotary_frequencies,
    rotary_table,
    yarn_frequencies,
)


def turned(x: np.ndarray, position: int, base: float = 10000.0) -> np.ndarray:
    """One vector of a head, at a position.  Shapes: (K,) -> (K,)."""
    cosine, sine = (
        table[position : position + 1]
        for table in rotary_table(position + 1, rotary_frequencies(len(x), base), dtype=np.float64)
    )
    return rotary(x[None, None], cosine, sine)[0][0, 0]


def test_angles() -> None:
    cosine, sine = rotary_table(7, rotary_frequencies(6, 1000.0), dtype=np.float64)
    assert cosine.shape == sine.shape == (7, 3)
    for p, i in np.ndindex(7, 3):
        angle = p / 1000 ** (2 * i / 6)  # 1, 1/10 and 1/100 of the position
        assert cosine[p, i] == pytest.approx(math.cos(angle), abs=1e-14)
        assert sine[p, i] == pytest.approx(math.sin(angle), abs=1e-14)
    assert {table.dtype for table in rotary_table(7, rotary_frequencies(6))} == {np.dtype(np.float32)}
    far = rotary_table(100_000, rotary_frequencies(2))[1][99_999, 0]
    assert far == pytest.approx(math.sin(99_999), abs=1e-6)  # angles are not rounded to float32


def test_halves_are_turned_like_complex_numbers() -> None:
    x = np.random.default_rng(0).standard_normal((7, 3, 8))
    positions = np.array([0, 1, 2, 0, 1, 5, 300])
    cosine, sine = (table[positions] for table in rotary_table(301, rotary_frequencies(8, 500.0), dtype=np.float64))
    y = rotary(x, cosine, sine)[0]
    rates = 500.0 ** (-np.arange(4) / 4)
    expected = (x[..., :4] + 1j * x[..., 4:]) * np.exp(1j * positions[:, None] * rates)[:, None]
    np.testing.assert_allclose(y[..., :4] + 1j * y[..., 4:], expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(y[[0, 3]], x[[0, 3]])  # position 0 stays as it is


def test_a_quarter_turn() -> None:
    np.testing.assert_allclose(rotary(np.array([[[3.0, 4.0]]]), *np.array([[[0.0]], [[1.0]]]))[0], [[[-4, 3]]])


@pytest.mark.parametrize("base", [10.0, 10000.0])
def test_scores_depend_on_the_distance_alone(base: float) -> None:
    query, key = np.random.default_rng(1).standard_normal((2, 6))
    scores = [[turned(query, t, base) @ turned(key, s, base) for s in range(20)] for t in range(20)]
    for distance in range(-19, 20):
        diagonal = np.diagonal(scores, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-10, atol=1e-12)
    assert len({round(score, 9) for score in scores[0]}) == 20


def test_a_turn_keeps_every_length() -> None:
    x = np.random.default_rng(2).standard_normal(10)
    for position in (0, 1, 17, 1000):
        assert np.linalg.norm(turned(x, position)) == pytest.approx(np.linalg.norm(x), rel=1e-12)


@pytest.mark.parametrize("count", [1, 5000], ids=["one row", "several blocks"])
def test_in_place_and_back(count: int) -> None:
    rng = np.random.default_rng(3)
    x, positions = rng.standard_normal((count, 2, 6)), rng.integers(0, 50, count)
    tables = [table[positions] for table in rotary_table(50, rotary_frequencies(6, 100.0), dtype=np.float64)]
    expected, wide = rotary(x, *tables)[0], np.zeros((count, 3 * 12))
    place = wide[:, 12:24].reshape(count, 2, 6)
    place[...] = x
    y, saved = rotary(place, *tables, out=place)
    assert y is place
    np.testing.assert_array_equal(place, expected)
    assert not wide[:, :12].any()
    assert not wide[:, 24:].any()
    (back,) = rotary_backward(place, saved, out=place)
    assert back is place
    np.testing.assert_allclose(wide[:, 12:24].reshape(count, 2, 6), x, rtol=1e-12, atol=1e-13)


FREQUENCIES, LENGTH = rotary_frequencies(64, 10000.0), 2048
STRETCHED = {
    "linear": interpolated_frequencies,
    "llama3": lambda frequencies, factor: llama3_frequencies(frequencies, factor, LENGTH, 1.0, 4.0),
    "yarn": lambda frequencies, factor: yarn_frequencies(frequencies, factor, LENGTH, 1.0, 32.0, 10000.0),
}


@pytest.mark.parametrize("name", STRETCHED)
def test_waves_are_stretched_and_keep_their_order(name: str) -> None:
    found = STRETCHED[name](FREQUENCIES, 8.0)
    assert (np.diff(found) < 0).all()
    assert ((found <= FREQUENCIES) & (found >= FREQUENCIES / 8 * (1 - 1e-12))).all()
    np.testing.assert_allclose(STRETCHED[name](FREQUENCIES, 1.0), FREQUENCIES, rtol=1e-12)


@pytest.mark.parametrize(("name", "high", "slack"), [("llama3", 4.0, 0), ("yarn", 32.0, 1)])
def test_only_waves_that_hardly_turn_in_a_text_are_stretched_by_all(name: str, high: float, slack: int) -> None:
    """yarn's bounds are whole planes, one further at most."""
    found, turns = STRETCHED[name](FREQUENCIES, 8.0) / FREQUENCIES, LENGTH * FREQUENCIES / (2 * math.pi)
    often, seldom = np.flatnonzero(turns > high), np.flatnonzero(turns < 1)
    np.testing.assert_allclose(found[often[: len(often) - slack]], 1)
    np.testing.assert_allclose(found[seldom[slack:]], 1 / 8)
    between = found[often[-1] + 1 + slack : seldom[0] - slack]
    assert ((between > 1 / 8) & (between < 1)).all()
    assert len(between) > 2

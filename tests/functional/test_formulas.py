"""Linear maps, embeddings, norms, gates, dropout and positions against their formulas."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.functional.activation import gated_linear
from toolkit.functional.dropout import drop_byte, dropout, keep_mask
from toolkit.functional.embedding import embedding, embedding_backward
from toolkit.functional.linear import linear
from toolkit.functional.norms import layer_norm, rms_norm
from toolkit.functional.positions import sinusoidal_positions


def test_linear() -> None:
    x, weight, bias = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([[1.0, 0.0, 2.0], [3.0, 1.0, 0.0]]), np.ones(3)
    np.testing.assert_array_equal(linear(x, weight, None)[0], [[7, 2, 2], [-3, -1, 0]])
    np.testing.assert_array_equal(linear(x, weight, bias)[0], [[8, 3, 3], [-2, 0, 1]])


def test_embedding_adds_to_what_is_there() -> None:
    table = np.arange(12.0).reshape(4, 3)
    y, saved = embedding(np.array([2, 0, 2]), table, 2.0)
    np.testing.assert_array_equal(y, 2 * table[[2, 0, 2]])
    gradient = np.full((4, 3), 100.0)
    embedding_backward(np.array([[1.0, 2, 3], [10, 20, 30], [4, 5, 6]]), saved, gradient)
    np.testing.assert_array_equal(gradient - 100, [[20, 40, 60], [0, 0, 0], [10, 14, 18], [0, 0, 0]])


def test_embedding_of_nothing() -> None:
    y, saved = embedding(np.array([], np.int64), np.ones((4, 3)))
    gradient = np.zeros((4, 3))
    embedding_backward(y, saved, gradient)
    assert y.shape == (0, 3)
    assert not gradient.any()


@pytest.mark.parametrize("shape", [(1, 4), (7, 5), (300, 257)])  # the last is larger than a block
def test_layer_norm_against_its_formula(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, gain, bias = rng.standard_normal(shape) * 3 + 5, rng.standard_normal(shape[1]), rng.standard_normal(shape[1])
    expected = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * gain
    np.testing.assert_allclose(layer_norm(x, gain, None)[0], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(layer_norm(x, gain, bias)[0], expected + bias, rtol=1e-10, atol=1e-12)


def test_layer_norm_of_a_constant_row_is_the_bias() -> None:
    bias = np.array([1.0, -2.0, 3.0], np.float32)
    y = layer_norm(np.full((2, 3), 0.5, np.float32), np.ones(3, np.float32), bias)[0]
    np.testing.assert_allclose(y, [bias, bias], atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 4), (7, 5), (300, 257)])
def test_rms_norm_against_its_formula(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, gain = rng.standard_normal(shape) * 3 + 5, rng.standard_normal(shape[1])
    expected = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-2) * gain
    np.testing.assert_allclose(rms_norm(x, gain, 1e-2)[0], expected, rtol=1e-12)


def test_rms_norm_keeps_the_direction_of_a_row() -> None:
    x = np.array([[3.0, 4.0], [-30.0, 40.0], [0.0, 0.0]])
    y = rms_norm(x, np.ones(2), 1e-12)[0]
    np.testing.assert_allclose(y, np.array([[0.6, 0.8], [-0.6, 0.8], [0, 0]]) * math.sqrt(2), rtol=1e-10)


@pytest.mark.parametrize("shape", [(1, 4), (300, 257)])
def test_a_gated_map_against_its_formula(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((shape[0], 3)), rng.standard_normal((3, 2 * shape[1]))
    bias, mask = rng.standard_normal(2 * shape[1]), rng.random(shape) < 0.7
    gate, up = np.split(x @ weight + bias, 2, axis=1)
    expected = gate / (1 + np.exp(-gate)) * up * mask * 1.5
    y, (*_, factors) = gated_linear(x, weight, bias, mask, 1.5)
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(factors[:, shape[1] :] * up, expected, rtol=1e-10, atol=1e-12)
    unbiased = gated_linear(x, weight, None, want_slope=False)[0]
    gate, up = np.split(x @ weight, 2, axis=1)
    np.testing.assert_allclose(unbiased, gate / (1 + np.exp(-gate)) * up, rtol=1e-10, atol=1e-12)


@settings(deadline=None)
@given(st.floats(0.0, 1.0, exclude_max=True))
def test_a_rate_in_256ths_is_close_and_its_scale_exact(rate: float) -> None:
    dropped = drop_byte(rate)
    assert 1 <= dropped <= 255
    assert abs(dropped / 256 - rate) <= 1 / 256
    scale = keep_mask(np.random.SFC64(0), (1, 1), rate)[1]
    assert (256 - dropped) / 256 * scale == pytest.approx(1, abs=1e-15)


def test_a_tenth_is_26_of_256() -> None:
    assert drop_byte(0.1) == 26
    assert keep_mask(np.random.SFC64(0), (1, 1), 0.1)[1] == 256 / 230


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_masks_drop_as_often_as_they_say(rate: float) -> None:
    shape = (211, 333)  # not a multiple of 8
    mask, _ = keep_mask(np.random.SFC64(7), shape, rate)
    assert mask.shape == shape
    assert mask.dtype == bool
    share = drop_byte(rate) / 256
    deviation = math.sqrt(share * (1 - share) / mask.size)
    assert abs((~mask).mean() - share) < 4 * deviation
    for neighbours in (mask[:, 1:] & mask[:, :-1], mask[1:] & mask[:-1], mask[:, 8:] & mask[:, :-8]):
        assert abs(neighbours.mean() - (1 - share) ** 2) < 8 * deviation  # entries fall independently


def test_masks_follow_their_seed() -> None:
    first, second, other = (keep_mask(np.random.SFC64(seed), (20, 20), 0.5)[0] for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    bits = np.random.SFC64([1, 2])
    assert (keep_mask(bits, (20, 20), 0.5)[0] != keep_mask(bits, (20, 20), 0.5)[0]).any()


def test_dropout_keeps_the_expectation() -> None:
    x = np.random.default_rng(0).random((200, 300)) + 1
    mask, scale = keep_mask(np.random.SFC64(1), x.shape, 0.3)
    y = dropout(x, mask, scale)[0]
    np.testing.assert_array_equal(y, np.where(mask, x * scale, 0))
    assert y.mean() == pytest.approx(x.mean(), rel=0.02)


def test_positions_of_the_paper() -> None:
    table = sinusoidal_positions(50, 12, dtype=np.float64)
    for position in (0, 1, 17, 49):
        for i in range(6):
            angle = position / 10000 ** (2 * i / 12)
            assert table[position, 2 * i] == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[position, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-12)


def test_the_first_positions_of_a_model_four_wide() -> None:
    np.testing.assert_allclose(
        sinusoidal_positions(2, 4), [[0, 1, 0, 1], [0.841471, 0.540302, 0.0099998, 0.99995]], atol=1e-6
    )


@pytest.mark.parametrize("width", [1, 4, 7, 10])
def test_the_layouts_are_one_another_reordered(width: int) -> None:
    paper, halves = (sinusoidal_positions(9, width, layout) for layout in ("interleaved", "halves"))
    assert paper.shape == halves.shape == (9, width)
    assert paper.dtype == halves.dtype == np.float32
    order = [*range(0, width, 2), *range(1, width, 2)]
    np.testing.assert_array_equal(paper[:, order], halves)


@pytest.mark.parametrize("width", [3, 4, 7, 16])
def test_the_waves_of_fairseq_count_from_2_and_end_at_20000_pi(width: int) -> None:
    half, places = width // 2, np.arange(2, 13)[:, None]
    angles = places / 10000 ** (np.arange(half) / max(half - 1, 1))
    table = sinusoidal_positions(11, width, "fairseq")
    np.testing.assert_allclose(table[:, : 2 * half], np.hstack((np.sin(angles), np.cos(angles))), atol=2e-6)
    assert table.shape == (11, width)
    assert not table[:, 2 * half :].any()


def test_a_shift_is_a_rotation() -> None:
    table = sinusoidal_positions(40, 8, "halves", np.float64)
    sine, cosine = np.split(table, 2, axis=1)
    shift_sine, shift_cosine = sine[5], cosine[5]
    np.testing.assert_allclose(sine[5:], sine[:-5] * shift_cosine + cosine[:-5] * shift_sine, atol=1e-12)
    np.testing.assert_allclose(cosine[5:], cosine[:-5] * shift_cosine - sine[:-5] * shift_sine, atol=1e-12)


def test_an_unknown_layout() -> None:
    with pytest.raises(ValueError, match="quarters"):
        sinusoidal_positions(3, 4, "quarters")

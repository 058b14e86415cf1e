"""The losses of preference tuning against their definitions, number by number."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.functional import output_loss as module
from toolkit.functional.losses import clipped_policy, clipped_value, preference_loss, preference_loss_backward
from toolkit.functional.output_loss import token_log_probs, token_log_probs_backward

numbers = st.floats(-5, 5)
clips = st.floats(0.05, 0.5)


@pytest.mark.parametrize("chunk", [1 << 20, 18, 1], ids=["one chunk", "three chunks", "row by row"])
@pytest.mark.parametrize("excluded", [None, np.array([0, 4])])
@pytest.mark.parametrize(("size", "temperature"), [(1, 1.0), (300, 1.0), (1, 0.4)])
def test_against_an_explicit_softmax(monkeypatch, chunk: int, excluded, size: float, temperature: float) -> None:
    monkeypatch.setattr(module, "_CHUNK_ELEMENTS", chunk)
    rng, labels = np.random.default_rng(0), np.array([1, 3, 3, 5, 1, 2, 5])
    x, weight, bias = rng.standard_normal((7, 3)) * size, rng.standard_normal((6, 3)), rng.standard_normal(6)
    logits = (x @ weight.T + bias) / temperature
    if excluded is not None:
        logits[:, excluded] = -np.inf
    shifted = logits - logits.max(axis=1, keepdims=True)
    probabilities = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    expected = (shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))[np.arange(7), labels]
    (log_probs, entropies), _ = token_log_probs(x, weight, bias, labels, temperature, excluded)
    np.testing.assert_allclose(log_probs, expected, rtol=1e-10, atol=1e-12)
    some = np.where(probabilities > 0, probabilities, 1)
    np.testing.assert_allclose(entropies, -(some * np.log(some)).sum(axis=1), rtol=1e-9, atol=1e-12)


def test_what_is_excluded_gets_no_gradient() -> None:
    rng = np.random.default_rng(0)
    x, weight, bias = rng.standard_normal((4, 3)), rng.standard_normal((6, 3)), rng.standard_normal(6)
    saved = token_log_probs(x, weight, bias, np.array([1, 2, 3, 5]), 1.0, np.array([0, 4]))[1]
    _, dweight, dbias = token_log_probs_backward(rng.standard_normal(4), saved)
    assert not dweight[[0, 4]].any()
    assert not dbias[[0, 4]].any()
    assert dbias[[1, 2, 3, 5]].all()


def test_no_rows() -> None:
    (log_probs, entropies), saved = token_log_probs(np.ones((0, 3)), np.ones((6, 3)), np.ones(6), np.zeros(0, int))
    assert len(log_probs) == len(entropies) == 0
    dx, dweight, dbias = token_log_probs_backward(log_probs, saved)
    assert dx.shape == (0, 3)
    assert not dweight.any()
    assert not dbias.any()


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5), st.floats(0.05, 3))
def test_a_preference_is_a_comparison_that_the_scores_decide_with_some_chance(pairs: list, scale: float) -> None:
    chosen, rejected = np.array(pairs).T
    expected = sum(-math.log(1 / (1 + math.exp(-scale * (c - r)))) for c, r in pairs)
    assert preference_loss(chosen, rejected, scale)[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_preference_of_any_size_is_finite(dtype: type) -> None:
    chosen, rejected = np.array([1e4, -1e4, 0], dtype), np.array([-1e4, 1e4, 0], dtype)
    loss, saved = preference_loss(chosen, rejected, 2.0)
    assert loss == pytest.approx(4e4 + math.log(2))
    dchosen, drejected = preference_loss_backward(1.0, saved)
    np.testing.assert_allclose(dchosen, [0, -2, -1], atol=1e-30)
    np.testing.assert_array_equal(drejected, -dchosen)


@given(st.lists(st.tuples(st.floats(-1, 1), numbers), min_size=1, max_size=6), clips)
def test_the_policy_gains_nothing_beyond_the_clip(tokens: list, clip: float) -> None:
    moves, advantages = np.array(tokens).T
    sums, _ = clipped_policy(moves - 3, np.full(len(tokens), -3.0), advantages, clip)
    loss = clipped = divergence = 0.0
    for move, advantage in tokens:
        ratio = math.exp(move)
        plain, limited = ratio * advantage, min(max(ratio, 1 - clip), 1 + clip) * advantage
        loss -= min(plain, limited)
        clipped += limited < plain
        divergence += ratio - 1 - move
    assert sums.loss == pytest.approx(loss, rel=1e-9, abs=1e-9)
    assert sums.divergence == pytest.approx(divergence, rel=1e-6, abs=1e-9)
    borderline = any(abs(abs(math.exp(move) - 1) - clip) < 1e-9 for move, _ in tokens)
    assert borderline or sums.clipped == clipped


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=6), clips)
def test_a_value_pays_for_the_larger_of_two_errors(tokens: list, clip: float) -> None:
    values, old, returns = np.array(tokens).T
    loss, _ = clipped_value(values, old, returns, clip)
    expected = 0.0
    for value, before, target in tokens:
        limited = before + min(max(value - before, -clip), clip)
        expected += max((value - target) ** 2, (limited - target) ** 2) / 2
    assert loss == pytest.approx(expected, rel=1e-9, abs=1e-12)

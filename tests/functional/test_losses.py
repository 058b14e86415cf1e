import math

import numpy as np
import pytest

from toolkit.functional import output_loss as module
from toolkit.functional.losses import squared_error, squared_error_backward
from toolkit.functional.output_loss import LossSums, output_loss, output_loss_backward

PRIOR = np.array([0, 0.3, 0.2, 0.4, 0, 0.1])
LABELS = np.array([1, 3, 3, 5, 1, 2, 5])


def arguments(rng: np.random.Generator, size: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return rng.standard_normal((7, 3)) * size, rng.standard_normal((6, 3)), rng.standard_normal(6)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("chunk", [1 << 20, 18, 1], ids=["one chunk", "three chunks", "row by row"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("size", [1, 300])
def test_against_an_explicit_log_softmax(monkeypatch, chunk: int, smoothing: float, size: float) -> None:
    monkeypatch.setattr(module, "_CHUNK_ELEMENTS", chunk)
    x, weight, bias = arguments(np.random.default_rng(0), size)
    log_probs = log_softmax(x @ weight.T + bias)
    target = (1 - smoothing) * np.eye(6)[LABELS] + smoothing * PRIOR
    sums, (dx, dweight, dbias) = output_loss(x, weight, bias, LABELS, smoothing, PRIOR)
    assert sums.tokens == 7
    assert math.isclose(sums.loss, -(target * log_probs).sum(), rel_tol=1e-12)
    assert math.isclose(sums.negative_log_likelihood, -log_probs[np.arange(7), LABELS].sum(), rel_tol=1e-12)
    dlogits = np.exp(log_probs) - target
    for gradient, expected in ((dx, dlogits @ weight), (dweight, dlogits.T @ x), (dbias, dlogits.sum(axis=0))):
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-10)


def test_without_gradients_the_sums_are_the_same() -> None:
    x, weight, bias = arguments(np.random.default_rng(0))
    with_gradients = output_loss(x, weight, bias, LABELS, 0.1, PRIOR)[0]
    sums, saved = output_loss(x, weight, bias, LABELS, 0.1, PRIOR, want_gradients=False)
    assert sums == with_gradients
    assert saved == (None, None, None)


def test_smoothing_asks_nothing_of_tokens_that_never_occur() -> None:
    """Their logits are pushed down by their probabilities, exactly as without smoothing."""
    x, weight, bias = arguments(np.random.default_rng(0))
    probabilities = np.exp(log_softmax(x @ weight.T + bias)).sum(axis=0)
    dbias = output_loss(x, weight, bias, LABELS, 0.1, PRIOR)[1][2]
    absent = PRIOR == 0
    np.testing.assert_allclose(dbias[absent], probabilities[absent], rtol=1e-12)
    shares = 0.9 * np.bincount(LABELS, minlength=6) + 0.1 * len(LABELS) * PRIOR
    np.testing.assert_allclose(dbias[~absent], (probabilities - shares)[~absent], rtol=1e-10)


def test_gradients_of_logits_sum_to_zero() -> None:
    """A constant added to all logits of a row changes nothing."""
    x, weight, bias = arguments(np.random.default_rng(0))
    for smoothing in (0.0, 0.1):
        dbias = output_loss(x, weight, bias, LABELS, smoothing, PRIOR)[1][2]
        assert abs(dbias.sum()) < 1e-13


def test_backward_multiplies() -> None:
    given = arguments(np.random.default_rng(0))
    plain = output_loss_backward(1.0, output_loss(*given, LABELS)[1])
    halved = output_loss_backward(0.5, output_loss(*given, LABELS)[1])
    for gradient, half in zip(plain, halved, strict=True):
        np.testing.assert_array_equal(half, gradient / 2)


def test_large_logits_do_not_overflow() -> None:
    x = np.array([[300.0], [-300.0]], np.float32)
    sums, _ = output_loss(x, np.array([[1.0], [-1.0]], np.float32), None, np.array([0, 0]))
    assert sums == LossSums(600.0, 600.0, 2)


def test_squared_error_by_hand() -> None:
    prediction, target = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([[0.5, 2.0], [1.0, 1.0]])
    loss, saved = squared_error(prediction, target)
    assert loss == 0.25 + 0 + 4 + 4
    np.testing.assert_array_equal(squared_error_backward(0.5, saved)[0], [[0.5, 0.0], [2.0, -2.0]])

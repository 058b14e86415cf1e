import math
from itertools import pairwise

import numpy as np
import pytest

from toolkit.training import optimizer as optimizer_module
from toolkit.training.optimizer import Adam, clip_scale, sum_of_squares


def textbook_adam(adam: Adam, theta: np.ndarray, gradients: list[np.ndarray], rate: float, decayed: int) -> np.ndarray:
    """Algorithm 1 of Kingma and Ba 2015 and algorithm 2 of Loshchilov and Hutter 2019, one number at a time."""
    theta = theta.copy()
    for i in range(len(theta)):
        m = v = 0.0
        decay = adam.weight_decay if i < decayed else 0.0
        for step, gradient in enumerate(gradients, 1):
            g = gradient[i] if adam.decoupled else gradient[i] + decay * theta[i]
            m = adam.beta1 * m + (1 - adam.beta1) * g
            v = adam.beta2 * v + (1 - adam.beta2) * g * g
            unbiased_m, unbiased_v = m / (1 - adam.beta1**step), v / (1 - adam.beta2**step)
            shrink = rate * decay * theta[i] if adam.decoupled else 0.0
            root = math.sqrt(unbiased_v + adam.eps) if adam.eps_inside else math.sqrt(unbiased_v) + adam.eps
            theta[i] -= rate * unbiased_m / root + shrink
    return theta


def moments_of(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(theta), np.zeros_like(theta)


@pytest.mark.parametrize("decoupled", [True, False])
@pytest.mark.parametrize("decayed", [0, 6, 8, 13, 20], ids=lambda n: f"{n} decayed")  # blocks are of four
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("eps_inside", [False, True])
def test_against_the_textbook(
    monkeypatch, decoupled: bool, decayed: int, weight_decay: float, eps_inside: bool
) -> None:
    monkeypatch.setattr(optimizer_module, "BLOCK_ELEMENTS", 4)
    rng = np.random.default_rng(0)
    adam = Adam(0.8, 0.95, 1e-3, weight_decay, decoupled, eps_inside)
    before, gradients = rng.standard_normal(18), list(rng.standard_normal((5, 18)))
    theta, moments = before.copy(), moments_of(before)
    for step, gradient in enumerate(gradients, 1):
        kept = gradient.copy()
        adam.update(theta, gradient, moments, step, 0.05, 0.5, decayed)
        np.testing.assert_array_equal(gradient, kept)
    halved = [gradient * 0.5 for gradient in gradients]
    np.testing.assert_allclose(theta, textbook_adam(adam, before, halved, 0.05, decayed), rtol=1e-12)
    if weight_decay:
        plain = textbook_adam(adam, before, halved, 0.05, 0)
        assert (np.abs(theta - plain)[:decayed] > 1e-6).all()
        np.testing.assert_allclose(theta[decayed:], plain[decayed:], rtol=1e-12)


def test_numbers_worked_by_hand() -> None:
    gradient = np.array([[0.01, -0.02], [0.005, 0.01]])
    theta, moments = np.zeros(4), moments_of(np.zeros(4))
    Adam(0.9, 0.999, 1e-8).update(theta, gradient.ravel(), moments, 1, 0.001, 1.0, 0)
    np.testing.assert_allclose(moments[0].reshape(2, 2), 0.1 * gradient, rtol=1e-12)
    np.testing.assert_allclose(moments[1].reshape(2, 2), [[1e-7, 4e-7], [2.5e-8, 1e-7]], rtol=1e-9)
    # The corrected moments of the first step are g and g², so every step is as long as the learning rate.
    np.testing.assert_allclose(theta.reshape(2, 2), -0.001 * np.sign(gradient), rtol=1e-5)


def test_where_eps_stands_decides_how_far_the_first_step_goes() -> None:
    """The corrected moments of the first step are g and g², here both nothing against ε."""
    lengths = {}
    for inside in (False, True):
        theta = np.zeros(1)
        Adam(eps=1e-6, eps_inside=inside).update(theta, np.array([1e-9]), moments_of(theta), 1, 1.0, 1.0, 0)
        lengths[inside] = -theta[0]
    assert lengths[False] == pytest.approx(1e-9 / (1e-9 + 1e-6), rel=1e-12)
    assert lengths[True] == pytest.approx(1e-9 / math.sqrt(1e-18 + 1e-6), rel=1e-12)


@pytest.mark.parametrize("decoupled", [True, False])
def test_a_stretch_moves_as_the_whole_would(decoupled: bool) -> None:
    """Workers each move a part: whichever way the vector is divided, the bits are the same."""
    rng = np.random.default_rng(1)
    adam = Adam(weight_decay=0.1, decoupled=decoupled)
    before, gradient = (rng.standard_normal(50).astype(np.float32) for _ in range(2))
    results = []
    for bounds in ([0, 50], [0, 7, 20, 50]):
        theta, moments = before.copy(), moments_of(before)
        for begin, end in pairwise(bounds):
            part = slice(begin, end)
            decayed = max(0, min(17, end) - begin)
            adam.update(theta[part], gradient[part], tuple(m[part] for m in moments), 1, 0.1, 0.25, decayed)
        results.append(theta.tobytes())
        assert theta.dtype == np.float32
    assert results[0] == results[1]


def test_sum_of_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer_module, "BLOCK_ELEMENTS", 7)
    x = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    assert sum_of_squares(x) == pytest.approx((x.astype(np.float64) ** 2).sum(), rel=1e-6)


@pytest.mark.parametrize(("norm", "limit", "expected"), [(4.0, 1.0, 0.25), (0.5, 1.0, 1.0), (9.0, 0.0, 1.0), (0, 1, 1)])
def test_clip_scale(norm: float, limit: float, expected: float) -> None:
    assert clip_scale(norm, limit) == expected

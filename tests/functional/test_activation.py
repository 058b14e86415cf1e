import math

import numpy as np
import pytest

from toolkit.functional.activation import (
    ACTIVATIONS,
    activated_linear,
    gelu,
    gelu_tanh,
    normal_distribution,
    relu,
    silu,
)

WIDE = np.concatenate((np.linspace(-9, 9, 4001), np.linspace(-1e-3, 1e-3, 101), [-0.0, 40.0, -40.0]))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 2e-7)])
def test_normal_distribution_against_the_standard_library(dtype: type, tolerance: float) -> None:
    x = WIDE.astype(dtype)
    found = normal_distribution(x, x * x)
    assert found.dtype == dtype
    exact = [0.5 * math.erfc(-float(value) / math.sqrt(2)) for value in x]
    np.testing.assert_allclose(found, exact, rtol=0, atol=tolerance)
    np.testing.assert_allclose(found + normal_distribution(-x, x * x), 1, rtol=0, atol=2 * tolerance)
    assert found.min() >= 0
    assert found.max() <= 1


def test_huge_numbers_are_kept_or_made_zero_without_a_warning() -> None:
    x = np.array([1e3, -1e3, 1e10, -1e10, 3e38, -3e38], np.float32)
    y, slope = x.copy(), np.empty_like(x)
    gelu(y, slope)
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    np.testing.assert_array_equal(slope, x > 0)


def reference_gelu(x: float) -> float:
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def reference_gelu_tanh(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def reference_silu(x: float) -> float:
    return x / (1 + math.exp(-x))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-6)])
@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (relu, lambda x: max(0.0, x)),
        (gelu, reference_gelu),
        (gelu_tanh, reference_gelu_tanh),
        (silu, reference_silu),
    ],
)
def test_activations_against_their_formulas(function, reference, dtype: type, tolerance: float) -> None:
    x = WIDE.astype(dtype)
    y, slope, without = x.copy(), np.full_like(x, np.nan), x.copy()
    function(y, slope)
    function(without)
    np.testing.assert_array_equal(without, y)
    np.testing.assert_allclose(y, [reference(float(value)) for value in x], rtol=0, atol=tolerance)


@pytest.mark.parametrize("function", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activations_are_finite_far_out(function) -> None:
    x = np.array([-1e4, -100, 100, 1e4], np.float32)
    y, slope = x.copy(), np.empty_like(x)
    function(y, slope)
    np.testing.assert_allclose(y, np.maximum(x, 0), atol=1e-6)
    np.testing.assert_allclose(slope, x > 0, atol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activated_linear_is_what_its_parts_are(activation: str) -> None:
    rng = np.random.default_rng(0)
    x, weight, bias, mask = (rng.standard_normal(shape) for shape in ((6, 3), (3, 5), (5,), (6, 5)))
    expected = x @ weight + bias
    ACTIVATIONS[activation](expected)
    expected *= (mask > 0) * 1.5
    given = x, weight, bias, activation, mask > 0, 1.5
    np.testing.assert_allclose(activated_linear(*given)[0], expected, rtol=1e-13)
    y, (_, _, _, slope) = activated_linear(*given, want_slope=False)
    np.testing.assert_allclose(y, expected, rtol=1e-13)
    assert slope is None

"""The error function, which NumPy lacks: erf(z) = 2/√π ∫₀ᶻ exp(-t²) dt."""

import functools
import math

import numpy as np
from numpy.polynomial import chebyshev

from toolkit.functional.arrays import Array

# Abramowitz and Stegun 1964, 7.1.26: absolute error below 1.5e-7, and with the rounding of float32 below 6e-7.
_RATE = 0.3275911
_POWERS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)

_FURTHEST = 6.0  # erf(6) differs from 1 by less than the resolution of float64


def erf_with_bell(z: Array) -> tuple[Array, Array]:
    """erf(z) and exp(-z²), element by element, in the precision of `z`.

        erf(|z|) = 1 - g(|z|) exp(-z²)

    with g a polynomial of 1 / (1 + p|z|) in float32, and a Chebyshev interpolant of the exact values in float64 (for
    gradient checks: its error is below 1e-14). The exponential is returned because derivatives need it.
    """
    magnitude = np.abs(z)
    bell = np.exp(-(z * z))
    if z.dtype == np.float64:
        tail = chebyshev.chebval(2 * _fold(np.minimum(magnitude, _FURTHEST)) - 1, _tail_coefficients())
    else:
        nearness = 1 / (1 + _RATE * magnitude)
        tail = np.full_like(z, _POWERS[0])
        for power in _POWERS[1:]:
            tail *= nearness
            tail += power
        tail *= nearness
    return np.copysign(1 - tail * bell, z), bell


def _fold(z: Array | float) -> Array | float:
    """[0, _FURTHEST] -> [1, 0], bent so that the tail becomes nearly a polynomial."""
    nearest = 1 / (1 + _FURTHEST / 2)
    return (1 / (1 + z / 2) - nearest) / (1 - nearest)


@functools.cache
def _tail_coefficients() -> Array:
    """Chebyshev coefficients of exp(z²) erfc(z) as a function of the folded argument."""

    def tail(node: float) -> float:
        nearest = 1 / (1 + _FURTHEST / 2)
        z = 2 * (1 / (nearest + (node + 1) / 2 * (1 - nearest)) - 1)
        return math.exp(z * z) * math.erfc(z)

    return chebyshev.chebinterpolate(np.vectorize(tail), 32)

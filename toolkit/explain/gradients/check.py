"""The check that every derivative of the toolkit meets, right or wrong: against a central difference."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.functional.arrays import Array

# The largest relative error of a right gradient, and the size below which a slope counts as being of that size: what
# rounding does to a difference of two losses does not shrink with the slope.
TOLERANCE = 1e-6
SMALLEST_SLOPE = 1e-2


class Measurement(NamedTuple):
    """One argument of a pair, moved along one direction."""

    argument: int
    found: float  # <gradient, direction>, by the backward
    difference: float  # the slope along that direction, by two more forwards

    @property
    def error(self) -> float:
        """|found - difference| relative to the larger of the two, which counts as `SMALLEST_SLOPE` at least."""
        size = max(abs(self.found), abs(self.difference), SMALLEST_SLOPE)
        return abs(self.found - self.difference) / size

    @property
    def is_right(self) -> bool:
        return self.error <= TOLERANCE  # false of NaN


def measure(
    forward: Callable[..., tuple[Any, Any]],
    backward: Callable[[Any, Any], tuple[Array, ...]],
    arguments: Sequence[Array],
    rng: np.random.Generator,
    step: float = 1e-5,
) -> list[Measurement]:
    """<gradient, direction> beside a central difference, for every argument, along a random direction.

    The arguments are float64 and come from `rng`, never from an initialiser: with a gain of 1 a wrong gradient passes.
    The number that is differentiated is <output, cotangent> with a random cotangent.
    Raises ValueError for a gradient too few or too many, AssertionError for one of another shape than its argument.
    """
    output, saved = forward(*arguments)
    cotangent = rng.standard_normal(np.shape(output))
    gradients = backward(cotangent, saved)
    measurements = []
    for index, (argument, gradient) in enumerate(zip(arguments, gradients, strict=True)):
        if gradient.shape != argument.shape:
            raise AssertionError(f"argument {index} has shape {argument.shape}, its gradient {gradient.shape}")
        direction = rng.standard_normal(argument.shape)
        difference = central_difference(lambda: np.vdot(forward(*arguments)[0], cotangent), argument, direction, step)
        measurements.append(Measurement(index, float(np.vdot(gradient, direction)), difference))
    return measurements


def check_pair(
    forward: Callable[..., tuple[Any, Any]],
    backward: Callable[[Any, Any], tuple[Array, ...]],
    arguments: Sequence[Array],
    rng: np.random.Generator,
    step: float = 1e-5,
) -> None:
    """`measure`, and an AssertionError for a gradient that is wrong."""
    for measurement in measure(forward, backward, arguments, rng, step):
        if not measurement.is_right:
            raise AssertionError(f"argument {measurement.argument}: {measurement.found} {measurement.difference}")


def central_difference(function: Callable[[], float], argument: Array, direction: Array, step: float) -> float:
    """The slope of `function`, which reads `argument`, when `argument` moves along `direction`."""
    kept = argument.copy()
    argument += step * direction
    above = function()
    argument[...] = kept - step * direction
    below = function()
    argument[...] = kept
    return float(above - below) / (2 * step)

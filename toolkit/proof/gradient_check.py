"""The check of a derivative: what a backward returns, against central differences of its forward.

The result y of a forward is made one number by a random cotangent c, L = Σ c · y, and the backward is given c as the
gradient of y. For each argument a, with its gradient da and a random direction d, two numbers must agree:

    analytic = Σ da · d        numeric = (L(a + h d) - L(a - h d)) / 2h
"""

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from toolkit.functional.arrays import Array

# The largest relative error of a right gradient, and the size below which a slope counts as being of that size: what
# rounding does to a difference of two losses does not shrink with the slope.
TOLERANCE = 1e-6
SMALLEST_SLOPE = 1e-2
STEP = 1e-5

_MOST_ENTRIES = 2_000  # of an argument whose wrong gradient is compared entry by entry, to tell what is wrong with it


class Measurement(NamedTuple):
    """The two slopes of one argument along one direction.  analytic: NaN where there is no gradient to take it from."""

    argument: str
    analytic: float  # <gradient, direction>, by the backward
    numeric: float  # by two more forwards

    @property
    def error(self) -> float:
        """Divide |analytic - numeric| by the larger of the two, which counts as `SMALLEST_SLOPE` at least."""
        size = max(abs(self.analytic), abs(self.numeric), SMALLEST_SLOPE)
        return abs(self.analytic - self.numeric) / size

    @property
    def is_right(self) -> bool:
        return self.error <= TOLERANCE  # false of NaN


@dataclass(frozen=True)
class Report:
    """The measurements of a pair, one for each argument that is differentiated; print it to read it."""

    measurements: Sequence[Measurement]
    problems: Sequence[str] = ()  # a sentence for each thing that is wrong, with its likely reason where there is one

    @property
    def passed(self) -> bool:
        return not self.problems and all(each.is_right for each in self.measurements)

    @property
    def arguments(self) -> list[str]:
        return [each.argument for each in self.measurements]

    @property
    def error(self) -> float:
        """Return the largest relative error; NaN where one is."""
        return float(np.max([each.error for each in self.measurements]))

    def __str__(self) -> str:
        width = max(len(name) for name in ("argument", *self.arguments))
        lines = [f"{'argument':{width}}  {'<gradient, d>':>16}  {'central difference':>18}  relative error"]
        for each in self.measurements:
            figures = f"{each.analytic:16.9f}  {each.numeric:18.9f}  {each.error:14.1e}"
            lines.append(f"{each.argument:{width}}  {figures}  {'right' if each.is_right else 'WRONG'}")
        return "\n".join([*lines, *self.problems, "passed" if self.passed else "failed"])


def check(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    arguments: Sequence[Any],
    *,
    keywords: Mapping[str, Any] | None = None,
    constants: Collection[str] = (),
    seed: int | np.random.Generator = 0,
    step: float = STEP,
) -> Report:
    """Compare every gradient of a pair with a central difference, along a random direction.

    forward: called as forward(*arguments, **keywords), returns (y, saved), or y alone where nothing is saved. y is an
    array, a number, or a tuple of them; a tuple of two is always (y, saved). backward: called as backward(dy, saved),
    or backward(dy) where nothing is saved; dy is shaped as y is. It returns a gradient for every array of floats among
    the arguments, in their order, or for every argument from the first on, None for what has none.
    arguments: copies are made, in float64; what is no array of floats is not differentiated. constants: names of
    arrays of floats that are not differentiated either. seed: of the cotangent and the directions, or their generator.

    A wrong gradient is not raised but reported. Raises TypeError for a forward that returns no numbers, ValueError for
    one whose result is not finite, for a name among `constants` that no argument has, and where there is nothing to
    differentiate.
    """
    # Not the numbers of `default_rng(seed)`, which may be the arguments: with x for the cotangent, xᵀ dy is symmetric.
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng([seed, 1])
    pair = _Pair(forward, arguments, keywords or {}, constants)
    y, saved = pair.results("forward")
    cotangents = [rng.standard_normal(each.shape) if each.ndim else float(rng.standard_normal()) for each in y]
    dy = pair.like_the_result(cotangents)
    gradients = pair.matched(backward(dy, *saved))
    pair.put_back("backward")
    if any(not np.array_equal(one, other) for one, other in zip(y, pair.results()[0], strict=True)):
        pair.problems.append("forward returns something else each time: what is random in it must be an argument.")

    def loss() -> float:
        return sum(np.vdot(each, cotangent) for each, cotangent in zip(pair.results()[0], cotangents, strict=True))

    measurements = []
    for index, name in pair.differentiated.items():
        argument, gradient = pair.arguments[index], gradients.get(index)
        direction = rng.standard_normal(argument.shape)
        numeric = central_difference(loss, argument, direction, step)
        problem = _unusable(argument, gradient)
        analytic = float("nan") if problem else float(np.vdot(gradient, direction))
        measurements.append(Measurement(name, analytic, numeric))
        if not problem and not measurements[-1].is_right and argument.size <= _MOST_ENTRIES:
            problem = _likely_mistake(gradient, _entry_by_entry(loss, argument, step), cotangents)
        pair.problems += [f"{name}: {problem}."] if problem else []
    if not all(each.is_right for each in measurements):
        from toolkit.proof.wrong import recognised  # whose cases are made of this check

        found = [gradients.get(index) for index in pair.differentiated]
        pair.problems += recognised(pair.arguments, y, pair.like_the_result(cotangents), found)
    return Report(measurements, pair.problems)


class _Pair:
    """A forward with copies of its arguments, and what is found wrong with the pair."""

    def __init__(self, forward: Callable, arguments: Sequence, keywords: Mapping[str, Any], constants: Collection[str]):
        self.forward, self.keywords, self.problems = forward, keywords, []
        self.names = _names(forward, len(arguments))
        if unknown := set(constants).difference(self.names):
            raise ValueError(f"there is no argument {min(unknown)!r}: the arguments are {', '.join(self.names)}")
        is_float = [isinstance(each, np.ndarray) and np.issubdtype(each.dtype, np.floating) for each in arguments]
        self.arguments = [
            np.array(each, np.float64 if wide else None) if isinstance(each, np.ndarray) else each
            for each, wide in zip(arguments, is_float, strict=True)
        ]
        self.kept = [each.copy() if isinstance(each, np.ndarray) else each for each in self.arguments]
        self.differentiated = {
            index: name for index, name in enumerate(self.names) if is_float[index] and name not in constants
        }
        if not self.differentiated:
            raise ValueError("there is nothing to differentiate: give arrays of floats as arguments")

    def results(self, who: str = "") -> tuple[list[Array], tuple]:
        """Call forward -> (copies of its results, what it saved: one thing or none).  who: see `put_back`."""
        returned = self.forward(*self.arguments, **self.keywords)
        is_pair = isinstance(returned, tuple) and len(returned) == 2
        y, *saved = returned if is_pair else (returned,)
        self.has_several = isinstance(y, tuple | list)
        y = [np.array(each) for each in (y if self.has_several else (y,))]
        if not y or not all(np.issubdtype(each.dtype, np.number) for each in y):
            raise TypeError("forward returns no numbers: it must return (y, saved) or y, an array or a tuple of arrays")
        if who:
            self.put_back(who)
            if not all(np.isfinite(each).all() for each in y):
                raise ValueError("the result of forward is not finite: give it arguments where it is")
            if any(each.dtype in (np.float32, np.float16) for each in y):
                self.problems.append(f"forward makes {y[0].dtype} of float64, too coarse for differences of it.")
        return y, tuple(saved)

    def like_the_result(self, cotangents: Sequence[Array | float]) -> Any:
        """Copy the cotangents, as a tuple where forward returns one."""
        copies = tuple(np.copy(each) if np.ndim(each) else each for each in cotangents)
        return copies if self.has_several else copies[0]

    def put_back(self, who: str) -> None:
        """Restore the arguments that a function has written to, and note that it has."""
        for name, now, before in zip(self.names, self.arguments, self.kept, strict=True):
            if isinstance(now, np.ndarray) and now.tobytes() != before.tobytes():
                now[...] = before
                self.problems.append(f"{name}: {who} writes to it, and whoever owns the array finds other numbers.")

    def matched(self, returned: Any) -> dict[int, Any]:
        """Sort what backward returned by the index of the argument that each gradient belongs to."""
        gradients = returned if isinstance(returned, tuple | list) else [returned]
        is_one_for_each = len(gradients) == len(self.differentiated)
        found = dict(zip(self.differentiated if is_one_for_each else range(len(gradients)), gradients, strict=True))
        if len(gradients) > len(self.arguments):
            self.problems.append(f"backward returns {len(gradients)} gradients for {len(self.arguments)} arguments.")
        for index, name in enumerate(self.names):
            if index not in self.differentiated and found.get(index) is not None:
                self.problems.append(f"{name}: there is a gradient of what is not differentiated.")
        return found


def _names(forward: Callable, count: int) -> list[str]:
    """Read the names of a function's first parameters; numbers for those that have none."""
    try:
        parameters = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):  # of a function that is not written in Python
        parameters = ()
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return [*names, *(f"argument {index}" for index in range(len(names), count))][:count]


def _unusable(argument: Array, gradient: Any) -> str:
    """Say why a slope cannot be taken from a gradient; "" where it can."""
    if gradient is None:
        return "its gradient is missing"
    if np.shape(gradient) != argument.shape:
        return f"it has shape {argument.shape}, its gradient {np.shape(gradient)}"
    if not np.isfinite(gradient).all():
        place = tuple(int(each) for each in np.argwhere(~np.isfinite(gradient))[0])
        return f"its gradient is not finite: {np.asarray(gradient)[place]} at {place}"
    return ""


def central_difference(function: Callable[[], float], argument: Array, direction: Array, step: float) -> float:
    """Measure the slope of `function`, which reads `argument`, when `argument` moves along `direction`."""
    kept = argument.copy()
    argument += step * direction
    above = function()
    argument[...] = kept - step * direction
    below = function()
    argument[...] = kept
    return float(above - below) / (2 * step)


def _entry_by_entry(loss: Callable[[], float], argument: Array, step: float) -> Array:
    """Compute the whole gradient of an argument by central differences, entry after entry."""
    numeric = np.empty_like(argument)
    for place in np.ndindex(argument.shape):
        direction = np.zeros_like(argument)
        direction[place] = 1
        numeric[place] = central_difference(loss, argument, direction, step)
    return numeric


def _likely_mistake(gradient: Any, numeric: Array, cotangents: Sequence[Array | float]) -> str:
    """Say in what way a wrong gradient differs from the one by differences, and what that points to.

    cotangents: what the backward was given as the gradients of the results.
    """
    gradient, largest = np.asarray(gradient, np.float64), np.abs(numeric).max()

    def equal(found: Array, right: Array | float) -> bool:
        return bool(np.abs(found - right).max(initial=0) <= 1e-4 * largest)

    if not gradient.any() or not largest:
        return "its gradient should be 0 everywhere" if gradient.any() else "its gradient is 0 everywhere"
    factor = float(np.vdot(gradient, numeric) / np.vdot(numeric, numeric))
    if equal(gradient, factor * numeric):
        return f"its gradient is {factor:.4g} times the right one{_meaning(factor, cotangents)}"
    if gradient.shape == numeric.T.shape and equal(gradient.T, numeric):
        return "its gradient is the transposed one"
    if equal(numeric.sum(axis=-1), 0) and not equal(gradient.sum(axis=-1), 0):
        return (
            "moved along a row of ones it changes nothing, but the rows of its gradient do not add up to 0: the "
            "derivative of what is the same for a whole row (its mean, or the sum of a softmax) is missing"
        )
    right = [equal(one, other) for one, other in zip(gradient, numeric, strict=True)]
    if any(right):
        return (
            f"{len(right) - sum(right)} of {len(right)} rows of its gradient are wrong, row {right.index(False)} "
            "first: is an index met more than once, or a part of the batch left out"
        )
    off = gradient - numeric
    if gradient.ndim > 1 and equal(np.ptp(off, axis=-1), 0):
        return "each row of its gradient is off by one number: a mean over the row is missing, or there twice"
    for axis, what, scale in ((0, "column", "a gain"), (-1, "row", "a standard deviation or a mask")):
        squares = (numeric * numeric).sum(axis=axis, keepdims=True)
        factors = (gradient * numeric).sum(axis=axis, keepdims=True) / np.where(squares > 0, squares, 1)
        if gradient.ndim > 1 and equal(gradient, factors * numeric):
            return f"each {what} of its gradient is off by a factor of its own, as where {scale} is left out"
    place = tuple(int(each) for each in np.unravel_index(np.abs(off).argmax(), off.shape))
    return f"its gradient is furthest off at {place}: {gradient[place]:.6g} where differences give {numeric[place]:.6g}"


def _meaning(factor: float, cotangents: Sequence[Array | float]) -> str:
    """Name the mistakes that give this constant factor."""
    if math.isclose(factor, -1, rel_tol=1e-4):
        return ": its sign is turned"
    numbers = [each for each in cotangents if not np.ndim(each)]
    if any(math.isclose(factor * each, 1, rel_tol=1e-4) for each in numbers):
        return ": the gradient of the result, dy, is not multiplied in"
    meanings = []
    for each in sorted({length for cotangent in cotangents for length in np.shape(cotangent) if length > 1}):
        if math.isclose(factor, each, rel_tol=1e-4):
            meanings.append(f"a division by {each} is missing (a sum for a mean)")
        if math.isclose(factor * each, 1, rel_tol=1e-4):
            meanings.append(f"it is divided by {each} once too often (a mean for a sum)")
        if any(math.isclose(power, each, rel_tol=1e-4) for power in (factor**2, factor**-2)):
            meanings.append(f"a scale of √{each} is missing, or there twice")
    if meanings:
        return f": {', or '.join(meanings)}"
    return ": a constant factor, such as a scale"

"""The diagnosis of a wrong gradient: in what way it differs from the right one, and which mistake that points to."""

import math
from collections.abc import Sequence

import numpy as np

from toolkit.functional.arrays import Array


def likely_mistake(gradient: Array, numeric: Array, cotangents: Sequence[Array | float]) -> str:
    """Compare a wrong gradient with the one by differences, both of one shape -> what is wrong, without a full stop.

    cotangents: what the backward was given as the gradients of the results.
    """
    gradient = np.asarray(gradient, np.float64)
    if not gradient.any():
        return "its gradient is 0 everywhere"
    size = float(np.vdot(numeric, numeric))
    factor = float(np.vdot(gradient, numeric)) / size if size else math.inf
    if not size:
        return "its gradient should be 0 everywhere"
    if _close(gradient, factor * numeric):
        return f"its gradient is {factor:.4g} times the right one{_meaning(factor, cotangents)}"
    if gradient.ndim == 2 and gradient.shape[0] == gradient.shape[1] and _close(gradient.T, numeric):
        return "its gradient is the transposed one"
    return _missing_sum(gradient, numeric) or _wrong_rows(gradient, numeric) or _wrong_factors(gradient, numeric)


def _close(found: Array, right: Array, size: float | None = None) -> bool:
    """Compare to four digits; size: of the numbers that count as large, by default the largest of the right ones."""
    size = np.abs(right).max(initial=0) if size is None else size
    return bool(np.abs(found - right).max(initial=0) <= 1e-4 * size)


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


def _missing_sum(gradient: Array, numeric: Array) -> str:
    """Find the missing derivative of a mean or a softmax: right rows add up to 0, these do not. "" elsewhere."""
    if not gradient.ndim or np.abs(numeric.sum(axis=-1)).max() > 1e-4 * np.abs(numeric).max() or len(numeric) < 2:
        return ""
    if np.abs(gradient.sum(axis=-1)).max() <= 1e-4 * np.abs(numeric).max():
        return ""
    return (
        "moved along a row of ones it changes nothing, but the rows of its gradient do not add up to 0: the "
        "derivative of what is the same for a whole row (its mean, or the sum of a softmax) is missing"
    )


def _wrong_rows(gradient: Array, numeric: Array) -> str:
    """Find the rows that are wrong, where some are right; "" where none is."""
    size = np.abs(numeric).max()
    right = [_close(one, other, size) for one, other in zip(gradient, numeric, strict=True)] if gradient.ndim else []
    if not any(right):
        return ""
    return (
        f"{len(right) - sum(right)} of {len(right)} rows of its gradient are wrong, row {right.index(False)} first: is "
        "an index met more than once, or a part of the batch left out"
    )


def _wrong_factors(gradient: Array, numeric: Array) -> str:
    """Find what is wrong alike in all rows or in all columns; else, where the two gradients are furthest apart."""
    off = gradient - numeric
    if gradient.ndim > 1 and np.ptp(off, axis=-1).max() < 1e-4 * np.abs(numeric).max():
        return "each row of its gradient is off by one number: a mean over the row is missing, or there twice"
    for axis, what, scale in ((0, "column", "a gain"), (-1, "row", "a standard deviation or a mask")):
        squares = (numeric * numeric).sum(axis=axis, keepdims=True)
        factors = (gradient * numeric).sum(axis=axis, keepdims=True) / np.where(squares > 0, squares, 1)
        if gradient.ndim > 1 and _close(gradient, factors * numeric):
            return f"each {what} of its gradient is off by a factor of its own, as where {scale} is left out"
    place = tuple(int(each) for each in np.unravel_index(np.abs(off).argmax(), off.shape))
    return f"its gradient is furthest off at {place}: {gradient[place]:.6g} where differences give {numeric[place]:.6g}"

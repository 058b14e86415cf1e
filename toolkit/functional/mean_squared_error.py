"""Mean squared error, as a sum: the caller divides once by the number of elements of the whole update."""

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved


def squared_error(prediction: Array, target: Array, empty: Empty = np.empty) -> tuple[float, Saved]:
    """How far a prediction is from what was wanted:

        loss = Σ (prediction - target)²

    Shapes: both (N, D) -> a number. Divide by N·D for the mean.
    """
    difference = np.subtract(prediction, target, out=empty(prediction.shape, prediction.dtype))
    return float(np.vdot(difference, difference)), difference


def squared_error_backward(dloss: float, saved: Saved) -> tuple[Array]:
    """The further off, the stronger the pull:

        dprediction = 2 (prediction - target) dloss

    Returns dprediction (N, D).
    """
    difference = saved
    difference *= 2 * dloss
    return (difference,)

"""The clipped squared error of a value function, the companion of the clipped policy.

It is not in the paper of Schulman et al. (2017) but in its authors' implementation, and in that of Stiennon et al.
(2020): what a batch of returns says may move a value only so far from where it was when the batch was drawn.
"""

import numpy as np

from toolkit.functional.arrays import Array, Saved


def clipped_value(values: Array, old: Array, returns: Array, clip: float) -> tuple[float, Saved]:
    """The larger of two squared errors, as it stands and with the step from the old value clipped:

        loss = Σ ½ max((v - R)², (v_old + clip(v - v_old, -ε, ε) - R)²)

    v_old and R are constants.  Shapes: all (N,) -> a number.
    """
    errors = values - returns
    limited = old + np.clip(values - old, -clip, clip) - returns
    squares, limited_squares = errors * errors, limited * limited
    loss = 0.5 * float(np.maximum(squares, limited_squares).sum(dtype=np.float64))
    return loss, np.where(squares >= limited_squares, errors, 0)


def clipped_value_backward(dloss: float, saved: Saved) -> tuple[Array]:
    """A value beyond the clip does not move the clipped error:

        dv = (v - R) dloss where the plain error is the larger or both are one, and 0 elsewhere

    Returns dv (N,).
    """
    return (saved * dloss,)

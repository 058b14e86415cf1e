"""Losses of numbers: squared errors, preferences between two scores, and the clipped losses of PPO.

All are sums: the caller divides once by the number of elements of the whole update.
"""

from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved


def squared_error(prediction: Array, target: Array, empty: Empty = np.empty) -> tuple[float, Saved]:
    """Sum the squared distances of a prediction from its target:

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


def preference_loss(chosen: Array, rejected: Array, scale: float = 1.0) -> tuple[float, Saved]:
    """Sum the surprise that the chosen one of each pair was preferred, if scores decide (Bradley and Terry 1952):

        m = scale · (chosen - rejected)        loss = Σ -log σ(m) = Σ log(1 + exp(-m))

    A reward model's loss with its rewards and scale 1 (Stiennon et al. 2020, section 3.4; Ouyang et al. 2022, eq. 1);
    that of direct preference optimization with log-ratios to the reference and scale β (Rafailov et al. 2023, eq. 7).
    Shapes: both (B,) -> a number.
    """
    margins = (chosen - rejected) * scale
    losses = np.logaddexp(0, -margins)  # overflows at neither end
    return float(losses.sum(dtype=np.float64)), (margins, scale)


def preference_loss_backward(dloss: float, saved: Saved) -> tuple[Array, Array]:
    """The less certain the right answer was, the further both scores are pushed apart:

        dchosen = -scale σ(-m)        drejected = scale σ(-m)        σ(-m) = exp(-log(1 + exp(m)))

    Returns dchosen and drejected, (B,).
    """
    margins, scale = saved
    pull = np.exp(-np.logaddexp(0, margins)) * (scale * dloss)
    return -pull, pull


class PolicySums(NamedTuple):
    """Sums over the tokens of a batch."""

    loss: float
    clipped: float  # tokens whose gradient the clip has stopped
    divergence: float  # of r - 1 - log r, which estimates KL(old || new) and is never negative (Schulman 2020)


def clipped_policy(new: Array, old: Array, advantages: Array, clip: float) -> tuple[PolicySums, Saved]:
    """Make actions with a positive advantage more probable, and others less, but only near the policy that acted:

        r = exp(new - old)        loss = Σ -min(r A, clip(r, 1 - ε, 1 + ε) A)

    The minimum is pessimistic: what the clip would gain is not counted, what it would lose is. old and A are constants.
    Shapes: new and old (N,) log-probabilities, advantages (N,) -> sums.
    """
    differences = new - old
    ratios = np.exp(differences)
    plain = ratios * advantages
    limited = np.clip(ratios, 1 - clip, 1 + clip) * advantages
    is_clipped = limited < plain
    loss = -float(np.minimum(plain, limited).sum(dtype=np.float64))
    divergence = float((ratios - 1 - differences).sum(dtype=np.float64))
    return PolicySums(loss, float(np.count_nonzero(is_clipped)), divergence), (plain, is_clipped)


def clipped_policy_backward(dloss: float, saved: Saved) -> tuple[Array]:
    """The ratio is its own slope, dr/dnew = r, and counts where it has not left the clip's range:

        dnew = -r A dloss where r A ≤ clip(r, 1 - ε, 1 + ε) A, and 0 elsewhere

    At r = 1, before the first update, that is REINFORCE's -A (Williams 1992).  Returns dnew (N,).
    """
    plain, is_clipped = saved
    return (np.where(is_clipped, 0, plain) * -dloss,)


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

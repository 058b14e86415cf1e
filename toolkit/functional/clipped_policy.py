"""The clipped surrogate objective of proximal policy optimization (Schulman et al. 2017, eq. 7), as a loss."""

from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array, Saved


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

"""From rewards to advantages: how much better an action was than the critic expected."""

from collections.abc import Sequence

import numpy as np

from toolkit.functional.arrays import Array


def token_rewards(log_probs: Array, reference: Array, score: float, beta: float) -> Array:
    """What every token of a reply earns (Ouyang et al. 2022, section 3.5; Ziegler et al. 2019, eq. 2):

        r_t = -β (log π(y_t) - log π_ref(y_t))        and for the last token the reply's score more

    Shapes: log_probs and reference (T,) -> (T,).
    """
    rewards = -beta * (log_probs - reference)
    rewards[-1] += score
    return rewards


def advantages_of(rewards: Array, values: Array, discount: float = 1.0, decay: float = 0.95) -> Array:
    """Generalised advantage estimation (Schulman et al. 2016, eq. 16) over one reply:

        δ_t = r_t + γ V_t+1 - V_t        A_t = δ_t + γλ A_t+1

    Nothing follows the last token: V_T = A_T = 0. λ = 1 takes what really came, with all its chance; λ = 0 trusts the
    critic about all but the next reward.
    Shapes: rewards and values (T,) -> (T,).
    """
    following = np.append(values[1:], 0)
    errors = rewards + discount * following - values
    advantages = np.empty_like(values)
    later = 0.0
    for step in range(len(errors) - 1, -1, -1):
        later = float(errors[step]) + discount * decay * later
        advantages[step] = later
    return advantages


def whitened(parts: Sequence[Array]) -> list[Array]:
    """All numbers with mean 0 and variance 1 together, however many parts they are in. Parts hold real tokens only."""
    everything = np.concatenate(parts)
    mean = everything.mean(dtype=np.float64)
    std = everything.std(dtype=np.float64)
    return [((part - mean) / (std + 1e-8)).astype(part.dtype) for part in parts]

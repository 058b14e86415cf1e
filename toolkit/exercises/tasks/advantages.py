"""The worth of each token of a reply: generalised advantage estimation, GAE (Schulman et al. 2016).

rewards r_t: what came with token t. values V_t: what a critic expected, before token t was written, of this token and
all later ones. The error of the critic is δ_t; the advantage A_t is the sum of δ_t and of all later errors, each of
them multiplied by γλ for every step that it is away.

    δ_t = r_t + γ V_t+1 - V_t

The reply is over after its last token: the value after the end is 0.
"""

import numpy as np


def advantages(rewards, values, gamma, lam):
    """Return the advantages of the tokens of one reply.

    rewards and values: (T,), gamma (γ) and lam (λ): numbers; returns (T,)
    """
    raise NotImplementedError

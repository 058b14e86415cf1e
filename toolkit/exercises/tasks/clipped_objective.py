"""The loss of PPO (Schulman et al. 2017), and its gradient.

ratio r: the probability of a token now, divided by that when it was written. Tokens with a positive advantage A are to
become more probable, the others less, but not further than the clip allows: the loss is the mean over the tokens of

    -min(r A, clip(r) A),    clip(r): r brought into the range from 1 - clip to 1 + clip

The advantages are constants. `back` takes nothing, since nothing comes after a loss.
"""

import numpy as np


def clipped_objective(ratio, advantage, clip):
    """Return the loss, a number, and `back`.

    ratio and advantage: (N,), clip: a number; back: nothing -> dratio (N,)
    """

    def back():
        raise NotImplementedError

    raise NotImplementedError

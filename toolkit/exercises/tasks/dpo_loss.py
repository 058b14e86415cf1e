"""Direct preference optimization, DPO (Rafailov et al. 2023): learning from pairs of a better and a worse reply.

The margin of a pair says by how much more the log-probability of the chosen reply has grown, since training began, than
that of the rejected one. The loss is the mean over the pairs of -log σ(beta · margin), with σ(z) = 1 / (1 + exp(-z)).
Replies are long, and so margins may be in the thousands, of both signs, where exp alone gives inf.

`back` takes nothing, since nothing comes after a loss.
"""

import numpy as np


def dpo_loss(chosen, rejected, chosen_before, rejected_before, beta):
    """Return the loss, a number, and `back`.

    chosen, rejected: (N,) log-probabilities of the replies now, chosen_before, rejected_before: (N,) those of the model
    that training began with (constants), beta: a number; back: nothing -> dchosen (N,), drejected (N,)
    """

    def back():
        raise NotImplementedError

    raise NotImplementedError

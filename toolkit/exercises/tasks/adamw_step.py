"""Weight decay, as AdamW has it (Loshchilov and Hutter 2019).

In every step the parameters also shrink a little, in proportion to `rate` and `decay`. It is decoupled: the gradient
and its moments m and v know nothing of it.
"""

import numpy as np
from adam_step import adam_step


def adamw_step(x, gradient, m, v, step, rate, decay):
    """Return x, m and v after the step: three new arrays.

    x, gradient, m, v: (N,), step: the number of this step, counted from 1, rate: the learning rate, decay: a number
    """
    raise NotImplementedError

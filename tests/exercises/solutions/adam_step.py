"""One step of Adam (Kingma and Ba 2015), which gives every parameter a step size of its own.

m is a running mean of the gradients (beta1 = 0.9), v one of their squares (beta2 = 0.999). Both began as zeros, which
the bias correction makes up for. x moves against the corrected m, divided by the root of the corrected v; eps = 1e-8,
which keeps a division by 0 away, is added to the root (outside of it).
"""

import numpy as np


def adam_step(x, gradient, m, v, step, rate):
    """Return x, m and v after the step: three new arrays.

    x, gradient, m, v: (N,), step: the number of this step, counted from 1, rate: the learning rate
    """
    m = 0.9 * m + 0.1 * gradient
    v = 0.999 * v + 0.001 * gradient**2
    mean, square = m / (1 - 0.9**step), v / (1 - 0.999**step)
    return x - rate * mean / (np.sqrt(square) + 1e-8), m, v

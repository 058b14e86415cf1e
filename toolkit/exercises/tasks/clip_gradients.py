"""A limit for the length of a step.

Now and then a batch has a gradient many times longer than usual, and one such step can undo a thousand others. So the
gradients of all parameters, seen as one long vector, are scaled down where its norm (the global norm) is over a limit.
"""

import numpy as np


def clip_gradients(gradients, limit):
    """Return new gradients whose global norm is at most the limit, and the norm that they had before.

    gradients: a list of arrays of any shapes, limit: a number above 0; returns a list of such arrays, and a number
    """
    raise NotImplementedError

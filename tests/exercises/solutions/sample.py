"""A token drawn by chance, with a random number that is given.

Lay the probabilities on the line from 0 to 1 one after the other, in the order of the ids. Token i has the piece from
the sum of those before it, which belongs to the piece, to the sum that includes its own, which does not. The token
drawn is the one in whose piece the number u lies. A probability may be 0: such a token is never drawn.
"""

import numpy as np


def sample(probabilities, u):
    """Return the id that the number u draws, an integer.

    probabilities: (V,), they sum to 1; u: a number, at least 0 and below 1
    """
    return int(np.searchsorted(np.cumsum(probabilities), u, side="right"))

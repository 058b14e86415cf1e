"""Top-p or nucleus sampling (Holtzman et al. 2020): as many tokens as it takes, more where the model is unsure.

From the most probable token down, tokens are kept until their probabilities sum to p or more. So the token that crosses
p is kept, and the first one always. The scores of all others become -inf.
"""

import numpy as np
from softmax import softmax


def top_p(scores, p):
    """Return new scores: those of the most probable tokens as they are, every token in its place, the others -inf.

    scores: (V,), p: a number above 0, at most 1; returns (V,)
    """
    raise NotImplementedError

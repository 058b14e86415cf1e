"""The learning rate of every update: warm-up, and then half a wave of a cosine.

Over the first `warmup` updates the rate rises in a straight line, from 0 (before the first one) to `peak`, at update
number `warmup`. Then it falls along a cosine and is `final` at update number `updates`; where training goes on, it
stays there. `warmup` may be 0: then it falls from the beginning.
"""

import math


def learning_rate(step, updates, warmup, peak, final):
    """Return the learning rate of an update, a number.

    step: the number of the update, counted from 1, updates: how many there are, warmup: fewer than that, from 0 on;
    peak and final: the largest rate and the last
    """
    if step <= warmup:
        return peak * step / warmup
    progress = min(1.0, (step - warmup) / (updates - warmup))
    return final + (peak - final) * (1 + math.cos(math.pi * progress)) / 2

"""The distance of a model from what it was: an estimate of the divergence KL(now, before).

It is estimated from tokens that the model of now has written, by their log-probabilities under both models. The mean of
now - before would be right on average, but it is negative for many tokens, and needs many of them. Schulman's third
estimator (2020, "Approximating KL divergence", k3) is right on average too, and never negative: with d = before - now,
it adds exp(d) - 1, whose average is 0.
"""

import numpy as np


def kl_estimate(log_probs, log_probs_before):
    """Return the mean over the tokens of the estimate that is never negative, a number.

    log_probs: (N,), of the tokens now, log_probs_before: (N,), of the same tokens under the model as it was
    """
    difference = log_probs_before - log_probs
    return (np.exp(difference) - 1 - difference).mean()

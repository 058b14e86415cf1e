"""The pairs of losses, those of preference tuning with arguments on every side of their clips."""

from collections.abc import Callable, Iterator

import numpy as np

from toolkit.explain.gradients.pair_case import Case, Check, arrays, present
from toolkit.functional.clipped_policy import clipped_policy, clipped_policy_backward
from toolkit.functional.clipped_value import clipped_value, clipped_value_backward
from toolkit.functional.mean_squared_error import squared_error, squared_error_backward
from toolkit.functional.output_loss import output_loss, output_loss_backward
from toolkit.functional.preference_loss import preference_loss, preference_loss_backward
from toolkit.functional.token_log_probs import token_log_probs, token_log_probs_backward


def _output_loss(with_bias: bool, smoothing: float) -> Callable:
    def make(rng, dtype, backward):
        arguments = arrays(rng, dtype, (7, 3), (6, 3), (6,))[: 2 + with_bias]
        labels = np.array([1, 3, 3, 5, 1, 2, 5])
        prior = np.array([0, 0.3, 0.2, 0.4, 0, 0.1], dtype)

        def forward(x, weight, bias=None):
            sums, saved = output_loss(x, weight, bias, labels, smoothing, prior if smoothing else None)
            return sums.loss, saved

        return Check(
            forward, lambda dy, saved: present(backward(float(dy), saved), with_bias), arguments, [labels, prior]
        )

    return make


def _squared_error(rng, dtype, backward):
    prediction, target = arrays(rng, dtype, (4, 3), (4, 3))
    return Check(
        lambda prediction: squared_error(prediction, target),
        lambda dy, saved: backward(float(dy), saved),
        [prediction],
        [target],
    )


def _token_log_probs(with_bias: bool, temperature: float, excluded: list[int] | None) -> Callable:
    def make(rng, dtype, backward):
        arguments = arrays(rng, dtype, (7, 3), (6, 3), (6,))[: 2 + with_bias]
        labels = np.array([1, 3, 3, 5, 1, 3, 5])

        def forward(x, weight, bias=None):
            (log_probs, _), saved = token_log_probs(x, weight, bias, labels, temperature, excluded)
            return log_probs, saved

        return Check(forward, lambda dy, saved: present(backward(dy, saved), with_bias), arguments, [labels])

    return make


def _preference_loss(scale: float) -> Callable:
    def make(rng, dtype, backward):
        chosen, rejected = arrays(rng, dtype, (6,), (6,))
        chosen += np.array([0, 0, 3, -3, 0, 0], dtype)  # sure and right, sure and wrong
        return Check(
            lambda chosen, rejected: preference_loss(chosen, rejected, scale),
            lambda dy, saved: backward(float(dy), saved),
            [chosen, rejected],
            [],
        )

    return make


def _clipped_policy(rng, dtype, backward):
    """Ratios within and beyond the clip on both sides, each with advantages of both signs."""
    ratios = np.repeat([0.4, 0.7, 0.9, 1.1, 1.3, 2.5], 2) * np.exp(rng.uniform(-0.05, 0.05, 12))
    old, advantages = arrays(rng, dtype, (12,), (12,))
    advantages = np.abs(advantages) * np.tile(np.array([1, -1], dtype), 6)
    new = old + np.log(ratios).astype(dtype)

    def forward(new):
        sums, saved = clipped_policy(new, old, advantages, 0.2)
        return sums.loss, saved

    return Check(forward, lambda dy, saved: backward(float(dy), saved), [new], [old, advantages])


def _clipped_value(rng, dtype, backward):
    """Values near the old ones and far from them, returns on either side and between."""
    moves = np.repeat([-1.5, -0.6, -0.1, 0.1, 0.6, 1.5], 3) + rng.uniform(-0.05, 0.05, 18)
    old = arrays(rng, dtype, (18,))[0]
    returns = old + np.tile(np.array([-2, 0.4, 2], dtype), 6)
    values = old + moves.astype(dtype)
    return Check(
        lambda values: clipped_value(values, old, returns, 0.3),
        lambda dy, saved: backward(float(dy), saved),
        [values],
        [old, returns],
    )


def loss_cases() -> Iterator[Case]:
    for bias in (True, False):
        named = "bias" if bias else "no bias"
        for smoothing in (0.0, 0.1):
            make = _output_loss(bias, smoothing)
            yield Case(f"output_loss, smoothing {smoothing}, {named}", output_loss_backward, make)
        for temperature, excluded in ((1.0, None), (0.6, [0, 2])):
            make = _token_log_probs(bias, temperature, excluded)
            yield Case(f"token_log_probs, temperature {temperature}, {named}", token_log_probs_backward, make)
    yield Case("squared_error", squared_error_backward, _squared_error)
    for scale in (1.0, 0.3):
        yield Case(f"preference_loss, scale {scale}", preference_loss_backward, _preference_loss(scale))
    yield Case("clipped_policy", clipped_policy_backward, _clipped_policy)
    yield Case("clipped_value", clipped_value_backward, _clipped_value)

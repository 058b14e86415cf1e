"""Learning rate schedules: functions from the number of the update, counted from 1, to a learning rate."""

import math
from collections.abc import Callable

Schedule = Callable[[int], float]

SCHEDULES = ("noam", "inverse_sqrt", "cosine", "constant")


def make_schedule(
    name: str, learning_rate: float, warmup: int, updates: int, final: float = 0.0, width: int = 512
) -> Schedule:
    """The schedule of that name. All rise linearly over the first `warmup` updates.

    noam: learning_rate · D^-½ · min(t^-½, t · warmup^-1½) (Vaswani et al. 2017, eq. 3; here learning_rate is the
    paper's factor, about 1, and D is `width`).
    inverse_sqrt: up to learning_rate, then down with 1 / √t.
    cosine: up to learning_rate, then half a wave down to `final` at update `updates`.
    constant: up to learning_rate and on.
    Raises ValueError for another name.
    """

    def noam(update: int) -> float:
        return learning_rate * width**-0.5 * min(update**-0.5, update * max(warmup, 1) ** -1.5)

    def inverse_sqrt(update: int) -> float:
        return learning_rate * min(_ramp(update, warmup), math.sqrt(max(warmup, 1) / update))

    def cosine(update: int) -> float:
        if update < warmup:
            return learning_rate * _ramp(update, warmup)
        progress = min((update - warmup) / max(updates - warmup, 1), 1.0)
        return final + (learning_rate - final) * 0.5 * (1 + math.cos(math.pi * progress))

    def constant(update: int) -> float:
        return learning_rate * _ramp(update, warmup)

    schedules = {"noam": noam, "inverse_sqrt": inverse_sqrt, "cosine": cosine, "constant": constant}
    if name not in schedules:
        raise ValueError(f"unknown schedule {name!r}: one of {', '.join(SCHEDULES)}")
    return schedules[name]


def _ramp(update: int, warmup: int) -> float:
    return min(update / warmup, 1.0) if warmup else 1.0

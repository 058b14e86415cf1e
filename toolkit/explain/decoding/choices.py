"""What decoding had to choose from at every step, and what it took: read from the real search while it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.decoding.hypothesis import Observer
from toolkit.decoding.sampling import largest_first, log_sum_exp
from toolkit.functional.arrays import Array


@dataclass(frozen=True)
class Stage:
    """A distribution over the next token, on its way from the model to the choice."""

    kept: int  # how many tokens have a probability above 0
    mass: float  # the sum over all tokens
    candidates: Mapping[int, float]  # of those that are looked at, the ones that are not excluded


@dataclass(frozen=True)
class Distribution:
    """The candidates of a step, the model's most probable ones first, and what each stage makes of them.

    stages: "model", then "permitted" (after processors and constraints), and for a sample "temperature" and those of
    "top_k", "top_p" and "min_p" that are in force.
    """

    tokens: Sequence[int]
    stages: Mapping[str, Stage]

    def only(self, count: int, taken: int) -> "Distribution":
        """The first `count` candidates, and what was taken."""
        first = self.tokens[:count]
        return Distribution([*first, *({taken} - set(first))], self.stages)


@dataclass(frozen=True)
class Choice:
    """A step of one output."""

    token: int
    distribution: Distribution


class Scores(Observer):
    """Keeps what the model and the constraints say of the tokens of the present step."""

    def __init__(self, count: int):
        """count: how many candidates are looked at, beside what is taken."""
        self._count = count
        self._stages: dict[str, Array] = {}
        self._owners = self._permitted = self._normalizers = np.empty(0)

    def scored(self, owners: Array, logits: Array, normalizers: Array) -> None:
        self._owners = owners.copy()
        self._stages = {"model": np.exp(logits - normalizers[:, None])}

    def constrained(self, logits: Array, normalizers: Array) -> None:
        self._permitted, self._normalizers = logits.copy(), normalizers.copy()

    def _distribution(self, row: int, taken: Sequence[int]) -> Distribution:
        """Of one row, with what was taken among its candidates."""
        best = largest_first(self._stages["model"][row][None], self._count)[0].tolist()
        tokens = [*best, *(token for token in dict.fromkeys(taken) if token not in best)]
        return Distribution(tokens, {name: _stage(every[row], tokens) for name, every in self._stages.items()})


class Choices(Scores):
    """Of greedy search and of samples: by sequence, the steps of each."""

    def __init__(self, count: int):
        super().__init__(count)
        self.steps: dict[int, list[Choice]] = {}

    def constrained(self, logits: Array, normalizers: Array) -> None:
        super().constrained(logits, normalizers)
        self._stages["permitted"] = np.exp(logits - log_sum_exp(logits)[:, None])

    def weighed(self, stage: str, tokens: Array | None, weights: Array) -> None:
        probabilities = weights / weights.sum(axis=1, keepdims=True)
        if tokens is not None:
            everywhere = np.zeros(self._permitted.shape)
            np.put_along_axis(everywhere, tokens, probabilities, axis=1)
            probabilities = everywhere
        self._stages[stage] = probabilities

    def chosen(self, tokens: Array) -> None:
        for row, (sequence, token) in enumerate(zip(self._owners.tolist(), tokens.tolist(), strict=True)):
            choice = Choice(token, self._distribution(row, [token]))
            self.steps.setdefault(sequence, []).append(choice)

    def of(self, tokens: Sequence[int]) -> list[Choice]:
        """The steps of the sequence that wrote these tokens, its end mark included where it has one."""
        wanted = list(tokens)
        return next(steps for steps in self.steps.values() if [step.token for step in steps] == wanted)


def _stage(probabilities: Array, tokens: Sequence[int]) -> Stage:
    candidates = {token: float(probabilities[token]) for token in tokens if probabilities[token] > 0}
    return Stage(int(np.count_nonzero(probabilities)), float(probabilities.sum(dtype=np.float64)), candidates)

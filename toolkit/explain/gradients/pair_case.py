"""What a case of the check of all pairs is: a forward and a backward, and arguments for them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from toolkit.functional.arrays import Array


class Check(NamedTuple):
    """What `check_pair` takes, and the other arrays that the pair reads."""

    forward: Callable[..., tuple[Any, Any]]  # its parameters are named as the arguments are
    backward: Callable[[Any, Any], tuple[Array, ...]]
    arguments: list[Array]
    constants: list[Array]


class Case(NamedTuple):
    """A pair, named by its backward, and how to make a check of it; another backward may be put in its place."""

    name: str
    backward: Callable
    make: Callable[[np.random.Generator, type, Callable], Check]

    def check(self, rng: np.random.Generator, dtype: type = np.float64, backward: Callable | None = None) -> Check:
        return self.make(rng, dtype, backward or self.backward)


def present(gradients: tuple[Array | None, ...], with_bias: bool) -> tuple[Array, ...]:
    """The gradients of a pair whose last one is None exactly where there is no bias.

    Raises AssertionError where it is not so.
    """
    if (gradients[-1] is not None) != with_bias:
        raise AssertionError("there is a gradient of the bias where there is no bias, or none where there is one")
    return gradients if with_bias else gradients[:-1]


def arrays(rng: np.random.Generator, dtype: type, *shapes: tuple[int, ...]) -> list[Array]:
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]

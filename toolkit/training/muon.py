"""Muon (Jordan et al. 2024): momentum whose matrices are made orthogonal before each step.

Adam measures every weight by itself. Muon takes a weight matrix for the linear map that it is: all directions of its
momentum are made equally long, so that a step also goes where gradients are small. It is for the weights of linear
maps; embeddings, gains and biases are left to AdamW.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.nn.module import Model, Parameter
from toolkit.training.config import TrainingConfig
from toolkit.training.optimizer import Adam

# The quintic a X + b (X Xᵀ) X + c (X Xᵀ)² X of Jordan et al., which drives singular values to about 1 in five rounds.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ROUNDS = 5
# An orthogonal step has entries of root mean square 1 / √max(m, n), AdamW's about 0.2 (Liu et al. 2025, section 2.2).
_ADAM_SIZE = 0.2


@dataclass(frozen=True)
class Muon:
    """The rule by which a gradient moves the weights of a linear map, (m, n); `adam` moves everything else.

        u ← μ u + g            θ ← (1 - lr · λ) θ - lr · 0.2 √max(m, n) · orthogonal(g + μ u)

    with Nesterov's momentum, and steps as large as AdamW's, so that both take one learning rate and weight decay
    (Liu et al. 2025, eq. 4). Maps that stand side by side in one parameter are made orthogonal each by itself.
    """

    adam: Adam = field(default_factory=Adam)
    momentum: float = 0.95

    def update(self, *arguments: Any) -> None:
        """Move what is no linear map; see `Adam.update`."""
        self.adam.update(*arguments)

    def update_maps(
        self, parameter: Parameter, theta: Array, gradient: Array, momentum: Array, learning_rate: float, scale: float
    ) -> None:
        """Move the linear maps of a parameter in place.

        theta, gradient, momentum: its stretch of the vectors. scale: what the gradient is multiplied by first.
        """
        views = [parameter.view(stretch) for stretch in (theta, gradient, momentum)]
        for parts in zip(*(np.split(view, parameter.maps, axis=1) for view in views), strict=True):
            self._move(*parts, learning_rate, scale)

    def _move(self, theta: Array, gradient: Array, momentum: Array, learning_rate: float, scale: float) -> None:
        """Shapes: all (m, n), of one order in memory."""
        if theta.flags.f_contiguous:  # the transpose becomes orthogonal with it, and lies in memory row after row
            theta, gradient, momentum = theta.T, gradient.T, momentum.T
        g = gradient * scale
        momentum *= self.momentum
        momentum += g
        g += self.momentum * momentum
        theta *= 1 - learning_rate * self.adam.weight_decay
        step = orthogonalized(g)
        step *= learning_rate * _ADAM_SIZE * max(theta.shape) ** 0.5
        theta -= step


def make_optimizer(config: TrainingConfig) -> Adam | Muon:
    """The optimizer of a training run."""
    decoupled = config.optimizer != "adam"
    adam = Adam(config.beta1, config.beta2, config.eps, config.weight_decay, decoupled, config.eps_inside)
    return Muon(adam) if config.optimizer == "muon" else adam


def orthogonalized(matrix: Array) -> Array:
    """U Vᵀ of the singular value decomposition U S Vᵀ, nearly: all singular values become 0.7 to 1.2.

    Newton and Schulz's iteration, whose products are all there is to compute (Jordan et al. 2024). A direction that
    is 10⁻³ times as large as the matrix or less stays shorter.
    """
    a, b, c = _COEFFICIENTS
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix * (1 / (np.linalg.norm(matrix) + np.finfo(matrix.dtype).tiny))
    for _ in range(_ROUNDS):
        square = x @ x.T if wide else x.T @ x  # the smaller of the two
        polynomial = square @ square
        polynomial *= c
        square *= b
        polynomial += square
        polynomial.reshape(-1)[:: len(polynomial) + 1] += a
        x = polynomial @ x if wide else x @ polynomial
    return x


class Piece(NamedTuple):
    """What one worker moves at once: a stretch of the vector, and the parameter that it is if Muon moves it."""

    stretch: slice
    map: Parameter | None


def divided(model: Model, optimizer: Adam | Muon, count: int) -> list[list[Piece]]:
    """The pieces of the model's vector for each of `count` workers.

    Adam's arithmetic is the same for every number: the vector is cut into equal stretches. Muon's maps go to whoever
    has least to do, the largest first, and what lies between them is cut into equal stretches.
    """
    size = len(model.vector)
    if isinstance(optimizer, Adam):
        bounds = [size * i // count for i in range(count + 1)]
        return [[Piece(slice(*bounds[i : i + 2]), None)] for i in range(count)]
    pieces: list[list[Piece]] = [[] for _ in range(count)]
    work = [0] * count
    maps = sorted(_maps(model), key=lambda piece: -_cost(piece.map))
    for piece in maps:
        worker = work.index(min(work))
        pieces[worker].append(piece)
        work[worker] += _cost(piece.map)
    end = 0
    for stretch in [*sorted((piece.stretch for piece in maps), key=lambda each: each.start), slice(size, size)]:
        bounds = [end + (stretch.start - end) * i // count for i in range(count + 1)]
        for i in range(count):
            if bounds[i] < bounds[i + 1]:
                pieces[i].append(Piece(slice(*bounds[i : i + 2]), None))
        end = stretch.stop
    return pieces


def _maps(model: Model) -> Iterator[Piece]:
    for parameter, start in model.places():
        if parameter.maps is not None and min(parameter.shape) > 1:
            yield Piece(slice(start, start + int(np.prod(parameter.shape))), parameter)


def _cost(parameter: Parameter) -> int:
    return min(parameter.shape) * int(np.prod(parameter.shape))

"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) over one flat vector, and averaging it."""

import math
from dataclasses import dataclass

import numpy as np

from toolkit.functional.arrays import BLOCK_ELEMENTS, Array


@dataclass(frozen=True)
class Adam:
    """The rule by which a gradient moves the parameters.

        m ← β₁ m + (1 - β₁) g            v ← β₂ v + (1 - β₂) g²
        θ ← θ - lr · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    eps_inside: ε stands inside the root, √(v / (1 - β₂ᵗ) + ε), as in the founding document 003: what ε is to the one,
    √ε is to the other.
    Weight decay is decoupled (AdamW: θ also shrinks by lr · λ θ) or not (Adam with L2 regularisation: λ θ is part of
    g), and applies to the leading, decayed part of the vector.
    """

    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-9
    weight_decay: float = 0.0
    decoupled: bool = True
    eps_inside: bool = False

    def update(
        self,
        parameters: Array,
        gradient: Array,
        moments: tuple[Array, Array],
        step: int,
        learning_rate: float,
        scale: float,
        decayed: int,
    ) -> None:
        """Move a stretch of the parameter vector in place.

        All arrays are the same stretch of their vectors. step: counted from 1. scale: what the gradient is multiplied
        by first (1 / tokens, clipping). decayed: this many leading elements of the stretch take weight decay. The
        chain of operations runs block by block, so that each block is read from memory once.
        """
        scratch = np.empty(BLOCK_ELEMENTS, parameters.dtype), np.empty(BLOCK_ELEMENTS, parameters.dtype)
        # m̂ / (√v̂ + ε) with the corrections of both moments taken out of the loop: rate · m / (√v + floor), or where ε
        # stands inside, rate · m / √(v + floor).
        root = math.sqrt(1 - self.beta2**step)
        rate = learning_rate * root / (1 - self.beta1**step)
        floor = self.eps * (root * root if self.eps_inside else root)
        for start in range(0, len(parameters), BLOCK_ELEMENTS):
            block = slice(start, min(start + BLOCK_ELEMENTS, len(parameters)))
            theta, m, v = parameters[block], moments[0][block], moments[1][block]
            g, size = (part[: len(theta)] for part in scratch)
            decay_end = min(max(decayed - start, 0), len(theta)) if self.weight_decay else 0
            np.multiply(gradient[block], scale, out=g)
            if not self.decoupled:
                g[:decay_end] += self.weight_decay * theta[:decay_end]
            else:
                theta[:decay_end] *= 1 - learning_rate * self.weight_decay
            np.multiply(g, g, out=size)
            size *= 1 - self.beta2
            v *= self.beta2
            v += size
            g *= 1 - self.beta1
            m *= self.beta1
            m += g
            if self.eps_inside:
                np.sqrt(np.add(v, floor, out=size), out=size)
            else:
                np.sqrt(v, out=size)
                size += floor
            np.divide(m, size, out=size)
            size *= rate
            theta -= size


def move_average(average: Array, parameters: Array, step: int, decay: float) -> None:
    """Move an exponential average of the parameters in place, after step t of the optimizer:

        d = min(decay, (1 + t) / (10 + t))            e ← d e + (1 - d) θ

    Both arrays are the same stretch of their vectors. The smaller decay of the first steps (as in TensorFlow's
    ExponentialMovingAverage) lets the average forget the initial values.
    """
    decay = min(decay, (1 + step) / (10 + step))
    scratch = np.empty(BLOCK_ELEMENTS, parameters.dtype)
    for start in range(0, len(parameters), BLOCK_ELEMENTS):
        e, theta = (vector[start : start + BLOCK_ELEMENTS] for vector in (average, parameters))
        e *= decay
        e += np.multiply(theta, 1 - decay, out=scratch[: len(theta)])


def sum_of_squares(x: Array) -> float:
    """Σ x², accumulated in float64 over blocks so that it neither overflows early nor loses small entries."""
    total = 0.0
    for start in range(0, len(x), BLOCK_ELEMENTS):
        block = x[start : start + BLOCK_ELEMENTS]
        total += float(np.vdot(block, block))
    return total


def clip_scale(norm: float, limit: float) -> float:
    """What a gradient of this norm is multiplied by so that its norm is at most `limit`; 0 means no limit."""
    return limit / norm if limit and norm > limit else 1.0

"""How much the last position of a text still depends on the first, by gradient: attention beside recurrence.

The Jacobian of the last output by the first input is read from real backward passes, one for each of its D rows: D
copies of the text, the cotangent of copy i being 1 at entry i of the last output and 0 elsewhere.
"""

import math

import numpy as np

from toolkit.explain.parallel.recurrent import recurrence, recurrence_backward
from toolkit.functional.arrays import Array
from toolkit.nn.attention import SelfAttention
from toolkit.nn.blocks import Block, Residual
from toolkit.nn.layers import FeedForward, LayerNorm
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

WIDTH, _HEADS = 32, 4
_SMALL = 0.1


class OneBlock(Model):
    """Causal self-attention and a feed-forward network, pre-norm, with the values that training begins with."""

    kind = "block"

    def __init__(self, generator: np.random.Generator, width: int = WIDTH):
        feed_forward = FeedForward(width, 4 * width, "relu")
        residuals = [Residual(LayerNorm(width), 0.0, pre_norm=True) for _ in range(2)]
        self.block = Block(SelfAttention(width, _HEADS, causal=True), feed_forward, residuals)
        self.allocate(np.float64)
        self.initialize(generator)

    def output(self, x: Array, copies: int = 1, tape: Tape | None = None) -> Array:
        """Shapes: (T, D) -> (copies · T, D)."""
        return self.block.forward(np.tile(x, (copies, 1)), Rows(np.full(copies, len(x))), tape or Tape())

    def jacobian(self, x: Array) -> Array:
        """d(output of the last row) / d(input of the first).  Shapes: (T, D) -> (D, D)."""
        length, width = x.shape
        tape = Tape(self.views(np.zeros_like(self.vector)))
        dy = np.zeros_like(self.output(x, width, tape))
        dy.reshape(width, length, width)[:, -1] = np.eye(width)
        return self.block.backward(dy, tape).reshape(width, length, width)[:, 0]


class Recurrent:
    """A recurrent layer whose recurrent matrix has a given spectral radius: the size of its largest eigenvalue.

    Generators of one seed give the same layer but for the radius. The weights of the inputs are small, so that the
    states are too, where tanh is nearly straight: with larger states every gradient vanishes sooner.
    """

    def __init__(self, generator: np.random.Generator, radius: float, width: int = WIDTH):
        self.weight = _SMALL * generator.standard_normal((width, width)) / math.sqrt(width)
        recurrent = generator.standard_normal((width, width))
        self.recurrent = recurrent * (radius / np.abs(np.linalg.eigvals(recurrent)).max())

    def jacobian(self, x: Array) -> Array:
        """d(last state) / d(first input).  Shapes: (T, D) -> (D, D)."""
        width = x.shape[1]
        copies = np.broadcast_to(x, (width, *x.shape))
        h, saved = recurrence(copies, self.weight, self.recurrent, np.zeros(width))
        dh = np.zeros_like(h)
        dh[:, -1] = np.eye(width)
        return recurrence_backward(dh, saved)[0][:, 0]


def reach(distances: list[int], radii: tuple[float, ...], seed: int = 0) -> dict[str, list[float]]:
    """The norm of the Jacobian (the root of the sum of its squares) at every distance, for the attention block and for
    a recurrent layer of each spectral radius, over the same normal random inputs."""
    layers: dict[str, OneBlock | Recurrent] = {"attention": OneBlock(np.random.default_rng(seed))}
    layers |= {f"radius {radius:g}": Recurrent(np.random.default_rng(seed), radius) for radius in radii}
    x = np.random.default_rng(seed + 1).standard_normal((max(distances) + 1, WIDTH))
    return {
        name: [float(np.linalg.norm(layer.jacobian(x[: distance + 1]))) for distance in distances]
        for name, layer in layers.items()
    }

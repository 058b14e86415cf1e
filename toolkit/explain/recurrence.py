"""A recurrent network (Elman 1990) beside attention: how much the last position of a text still depends on the first.

Each step of a recurrence needs the state that the step before left. The Jacobian of the last output by the first input
is read from real backward passes, one for each of its D rows: D copies of the text, the cotangent of copy i being 1 at
entry i of the last output and 0 elsewhere.
"""

import math

import numpy as np

from toolkit.functional.arrays import Array, Saved, sum_rows
from toolkit.nn.attention import SelfAttention
from toolkit.nn.blocks import Block, Residual
from toolkit.nn.layers import FeedForward, LayerNorm
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

WIDTH, _HEADS = 32, 4
_SMALL = 0.1


def recurrence(x: Array, weight: Array, recurrent: Array, bias: Array) -> tuple[Array, Saved]:
    """Compute one state after the other, from a state of zeros.

        h_t = tanh(x_t W + h_{t-1} U + b)

    x W needs no state and is one product for all steps; h U is one product a step, and no two of them can be joined.
    Shapes: x (B, T, D), weight W (D, F), recurrent U (F, F), bias (F,) -> h (B, T, F).
    """
    batch, steps, width = x.shape
    h = np.matmul(x.reshape(-1, width), weight).reshape(batch, steps, len(bias))
    h += bias
    for step in range(steps):
        state = h[:, step]
        if step:
            state += h[:, step - 1] @ recurrent
        np.tanh(state, out=state)
    return h, (x, weight, recurrent, h)


def recurrence_backward(dh: Array, saved: Saved) -> tuple[Array, Array, Array, Array]:
    """Go from the last state to the first: each receives its own gradient and what the next one passes back.

        dz_t = (dh_t + dz_{t+1} Uᵀ) · (1 - h_t²)        dx = dz Wᵀ        dW = Σ_t x_tᵀ dz_t
        dU = Σ_t h_{t-1}ᵀ dz_t        db = Σ_t dz_t

    What arrives at step t from step t + d has been multiplied d times by Uᵀ and by 1 - h²: it vanishes or explodes
    (Bengio, Simard and Frasconi 1994). Returns dx (B, T, D), dweight (D, F), drecurrent (F, F), dbias (F,).
    """
    x, weight, recurrent, h = saved
    dz = 1 - h * h
    for step in reversed(range(h.shape[1])):
        arrived = dh[:, step] + dz[:, step + 1] @ recurrent.T if step + 1 < h.shape[1] else dh[:, step]
        dz[:, step] *= arrived
    rows = dz.reshape(-1, dz.shape[2])
    dx = np.matmul(rows, weight.T).reshape(x.shape)
    dweight = x.reshape(-1, x.shape[2]).T @ rows
    drecurrent = np.tensordot(h[:, :-1], dz[:, 1:], ((0, 1), (0, 1)))
    return dx, dweight, drecurrent, sum_rows(rows)


class OneBlock(Model):
    """Causal self-attention and a feed-forward network, pre-norm, with the values that training begins with."""

    kind = "block"

    def __init__(self, generator: np.random.Generator, width: int = WIDTH):
        attention, feed_forward = SelfAttention(width, _HEADS, causal=True), FeedForward(width, 4 * width, "relu")
        self.block = Block(*(Residual(LayerNorm(width), layer) for layer in (attention, feed_forward)))
        self.allocate(np.float64)
        self.initialize(generator)

    def output(self, x: Array, copies: int = 1, tape: Tape | None = None) -> Array:
        """Run the block on copies of a text.  Shapes: (T, D) -> (copies · T, D)."""
        return self.block.forward(np.tile(x, (copies, 1)), Rows(np.full(copies, len(x))), tape or Tape())

    def jacobian(self, x: Array) -> Array:
        """Compute d(output of the last row) / d(input of the first).  Shapes: (T, D) -> (D, D)."""
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
        """Compute d(last state) / d(first input).  Shapes: (T, D) -> (D, D)."""
        width = x.shape[1]
        copies = np.broadcast_to(x, (width, *x.shape))
        h, saved = recurrence(copies, self.weight, self.recurrent, np.zeros(width))
        dh = np.zeros_like(h)
        dh[:, -1] = np.eye(width)
        return recurrence_backward(dh, saved)[0][:, 0]


def reach(distances: list[int], radii: tuple[float, ...], seed: int = 0) -> dict[str, list[float]]:
    """Compute the norm of the Jacobian (the root of the sum of its squares) at every distance, for attention and for
    a recurrent layer of each spectral radius, over the same normal random inputs."""
    layers: dict[str, OneBlock | Recurrent] = {"attention": OneBlock(np.random.default_rng(seed))}
    layers |= {f"radius {radius:g}": Recurrent(np.random.default_rng(seed), radius) for radius in radii}
    x = np.random.default_rng(seed + 1).standard_normal((max(distances) + 1, WIDTH))
    return {
        name: [float(np.linalg.norm(layer.jacobian(x[: distance + 1]))) for distance in distances]
        for name, layer in layers.items()
    }

"""One step of AdamW in numbers, read from the toolkit's own optimizer as it moves a copy of the parameters."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array, row_blocks
from toolkit.nn.module import Model
from toolkit.training.optimizer import Adam, clip_scale, sum_of_squares


class Update(NamedTuple):
    """The first step of an optimizer whose moments are zeros.  Vectors are divided as the model's own."""

    optimizer: Adam
    learning_rate: float
    norm: float  # of the mean gradient over the tokens, before clipping
    clipping: float  # what clipping multiplies the gradient by
    gradient: Array  # the mean over the tokens, clipped: g
    moments: tuple[Array, Array]  # m and v after the step
    before: Array
    after: Array

    @property
    def slope(self) -> float:
        """What the loss changes by if it is as straight as its tangent: <∂L/∂θ, Δθ>, without clipping."""
        total = 0.0
        for rows in row_blocks(len(self.after), 1):
            total += float(np.vdot(self.gradient[rows].astype(np.float64), self.after[rows] - self.before[rows]))
        return total / self.clipping


class Entry(NamedTuple):
    """What the step does to one number of one parameter."""

    name: str  # "decoder.0.attention.output.weight[3, 5]"
    gradient: float  # g, with λ θ where decay is not decoupled
    m: float
    v: float
    m_hat: float
    v_hat: float
    step: float  # lr · m̂ / (√v̂ + ε)
    decay: float  # lr · λ θ, where the parameter decays
    before: float
    after: float


def first_update(
    model: Model, gradient: Array, tokens: int, optimizer: Adam, learning_rate: float, clip: float
) -> Update:
    """Take one step, on a copy of the model's vector.

    gradient: of the sum of the losses of so many tokens; it becomes that of the mean, clipped. clip: the largest norm
    of the mean gradient; 0 does not clip.
    """
    norm = math.sqrt(sum_of_squares(gradient)) / tokens
    clipping = clip_scale(norm, clip)
    after = model.vector.copy()
    moments = np.zeros_like(after), np.zeros_like(after)
    optimizer.update(after, gradient, moments, 1, learning_rate, clipping / tokens, model.decayed)
    gradient *= clipping / tokens
    return Update(optimizer, learning_rate, norm, clipping, gradient, moments, model.vector, after)


def with_values(model: Model, vector: Array) -> Model:
    """A model of the same shape with these values."""
    other = type(model)(model.config)
    other.allocate(vector.dtype.type, vector)
    return other


def entry(model: Model, update: Update, name: str, index: Sequence[int]) -> Entry:
    """One number of the parameter of that name; index: its place there."""
    parameter, place = model.parameters()[name], tuple(int(each) for each in index)

    def at(vector: Array) -> float:
        return float(model.views(vector)[parameter][place])

    adam, before, (m, v) = update.optimizer, at(update.before), map(at, update.moments)
    m_hat, v_hat = m / (1 - adam.beta1), v / (1 - adam.beta2)
    root = math.sqrt(v_hat + adam.eps) if adam.eps_inside else math.sqrt(v_hat) + adam.eps
    decay = adam.weight_decay * before if parameter.decay else 0.0
    return Entry(
        f"{name}[{', '.join(map(str, place))}]",
        at(update.gradient) + (0.0 if adam.decoupled else decay),
        m,
        v,
        m_hat,
        v_hat,
        update.learning_rate * m_hat / root,
        update.learning_rate * decay if adam.decoupled else 0.0,
        before,
        at(update.after),
    )


def largest(model: Model, update: Update, name: str, columns: slice = slice(None)) -> Entry:
    """The number of a parameter, perhaps within some of its last axis, whose gradient is largest."""
    size = np.abs(model.views(update.gradient)[model.parameters()[name]][..., columns])
    *rest, last = np.unravel_index(size.argmax(), size.shape)
    return entry(model, update, name, (*rest, last + (columns.start or 0)))


def chosen_entries(model: Model, update: Update) -> list[Entry]:
    """A few numbers, each the one with the largest gradient of its parameter: of the embedding, of the first and the
    last matrix and of one in the middle, of a gain, and of the biases of keys where there are any."""
    names = list(model.parameters())
    matrices = [name for name in names if name.endswith("weight")]
    chosen = [names[0], matrices[0], matrices[len(matrices) // 2], matrices[-1]]
    chosen += [name for name in names if name.endswith("gain")][:1]
    entries = [largest(model, update, name) for name in dict.fromkeys(chosen)]
    if keys := key_biases(model):
        entries.append(largest(model, update, *keys[0]))
    return entries


def key_biases(model: Model) -> list[tuple[str, slice]]:
    """The biases of keys that no probability depends on: the parameter that each stands in, and which part of it.

    A bias of a key adds the same to all scores of a query, unless rotary positions turn it differently for every key.
    """
    found = []
    if model.config.positions == "rotary":
        return found
    for name, parameter in model.parameters().items():
        if name.endswith("query_key_value.bias"):
            weight = name.removesuffix("query_key_value.bias") + "output.weight"
            width = model.parameters()[weight].shape[0]
            found.append((name, slice(width, width + (parameter.shape[0] - width) // 2)))
        elif name.endswith("key_value.bias"):
            found.append((name, slice(0, parameter.shape[0] // 2)))
    return found


class Share(NamedTuple):
    """The parameters of one part of a model."""

    name: str
    size: int  # numbers
    moved: int  # those whose gradient is not exactly zero
    norm: float  # of their mean gradient, before clipping


def shares(model: Model, update: Update) -> list[Share]:
    """What the gradient gives each part of the model: an embedding, an attention, a norm."""
    parts: dict[str, list[Array]] = {}
    views = model.views(update.gradient)
    for name, parameter in model.parameters().items():
        parts.setdefault(_part(name), []).append(views[parameter])
    return [
        Share(
            name,
            sum(each.size for each in gradients),
            sum(np.count_nonzero(each) for each in gradients),
            math.sqrt(sum(float(np.vdot(each, each)) for each in gradients)) / update.clipping,
        )
        for name, gradients in parts.items()
    ]


def _part(name: str) -> str:
    """ "decoder.0.attention" of "decoder.0.attention.output.weight", "trunk.norm" of "trunk.norm.gain"."""
    words = name.split(".")
    return ".".join(words[: -2 if len(words) > 3 else -1] or words)


class Example(NamedTuple):
    """A step on a matrix that stands alone: m, v and the new values, with all that is between."""

    m: Array
    v: Array
    m_hat: Array
    v_hat: Array
    step: Array
    after: Array


def example_step(adam: Adam, values: Array, gradient: Array, learning_rate: float) -> Example:
    """The first step of `adam` on these values, in float64.  Shapes: values and gradient alike, any."""
    after, g = np.array(values, float).reshape(-1), np.array(gradient, float).reshape(-1)
    m, v = np.zeros_like(after), np.zeros_like(after)
    adam.update(after, g, (m, v), 1, learning_rate, 1.0, 0)
    shape, before = np.shape(values), np.asarray(values, float)
    m, v, after = (each.reshape(shape) for each in (m, v, after))
    return Example(m, v, m / (1 - adam.beta1), v / (1 - adam.beta2), before - after, after)

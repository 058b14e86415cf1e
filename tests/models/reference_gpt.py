"""A GPT written once more, as plainly as possible: one text, one head and one position after the other, in float64.

It shares nothing with the toolkit but the names of the parameters, and has neither batches nor a backward.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

Array = np.ndarray
Parameters = Mapping[str, Array]


def reference_logits(config, parameters: Parameters, ids: Array) -> Array:
    """Scores of all tokens after every prefix of one text.  Shapes: ids (T,) -> (T, V)."""
    table = parameters["trunk.input.embedding.table"]
    x = table[ids] + absolute_position(config, parameters, len(ids))
    for layer in range(config.layers):
        part = within(parameters, f"trunk.decoder.blocks.{layer}.")
        x = x + attention(config, part, normed(config, within(part, "attention.norm."), x))
        x = x + feed_forward(config, part, normed(config, within(part, "feed_forward.norm."), x))
    x = normed(config, within(parameters, "trunk.decoder.norm."), x)
    scores = x @ (table if config.tie else parameters["output.table"]).T
    return scores + parameters.get("output.bias", 0.0)


def reference_loss(config, parameters: Parameters, inputs: Array, labels: Array) -> float:
    """The sum of -log p(label) over one text."""
    total = 0.0
    for logits, label in zip(reference_logits(config, parameters, inputs), labels, strict=True):
        total -= logits[label] - math.log(sum(math.exp(z) for z in logits))
    return total


def within(parameters: Parameters, prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}


def affine(parameters: Parameters, name: str, x: Array) -> Array:
    return x @ parameters[f"{name}.weight"] + parameters.get(f"{name}.bias", 0.0)


def normed(config, parameters: Parameters, x: Array) -> Array:
    centred = x if config.norm == "rms" else x - x.mean(axis=1, keepdims=True)
    size = np.sqrt((centred**2).mean(axis=1, keepdims=True) + config.norm_eps)
    return centred / size * parameters["gain"] + parameters.get("bias", 0.0)


def absolute_position(config, parameters: Parameters, length: int) -> Array | float:
    if config.positions == "rotary":
        return 0.0
    if config.positions == "learned":
        return parameters["trunk.input.positions.embedding.table"][:length]
    waves = np.zeros((length, config.d_model))
    for p in range(length):
        for i in range(config.d_model // 2):
            angle = p / 10000 ** (2 * i / config.d_model)
            first, second = (i, config.d_model // 2 + i) if config.positions.endswith("halves") else (2 * i, 2 * i + 1)
            waves[p, first], waves[p, second] = math.sin(angle), math.cos(angle)
    return waves


def attention(config, parameters: Parameters, x: Array) -> Array:
    length, width = x.shape
    head = width // config.num_heads
    groups = config.num_key_value_heads or config.num_heads
    projected = affine(parameters, "attention.layer.query_key_value", x)
    query, key, value = np.split(projected, [width, width + groups * head], axis=1)
    context = np.zeros((length, width))
    for h in range(config.num_heads):
        own, shared = columns(h, head), columns(h * groups // config.num_heads, head)
        for t in range(length):
            turned = turn(config, query[t, own], t)
            scores = [turned @ turn(config, key[s, shared], s) / math.sqrt(head) for s in range(t + 1)]
            shares = np.exp(np.array(scores) - max(scores))
            context[t, own] = shares / shares.sum() @ value[: t + 1, shared]
    return affine(parameters, "attention.layer.output", context)


def columns(head: int, width: int) -> slice:
    return slice(head * width, (head + 1) * width)


def turn(config, x: Array, position: int) -> Array:
    """One head of one position: coordinates i and i + K/2 as a complex number, times exp(i · angle)."""
    if config.positions != "rotary":
        return x
    half = len(x) // 2
    rates = np.array([config.rotary_base ** (-2 * i / len(x)) for i in range(half)])
    turned = (x[:half] + 1j * x[half:]) * np.exp(1j * position * rates)
    return np.concatenate((turned.real, turned.imag))


def feed_forward(config, parameters: Parameters, x: Array) -> Array:
    hidden = affine(parameters, "feed_forward.layer.up", x)
    if config.activation == "swiglu":
        gate, up = np.split(hidden, 2, axis=1)
        hidden = np.vectorize(silu)(gate) * up
    else:
        hidden = np.vectorize(ACTIVATIONS[config.activation])(hidden)
    return affine(parameters, "feed_forward.layer.down", hidden)


def silu(x: float) -> float:
    return x / (1 + math.exp(-x))


ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": silu,
}

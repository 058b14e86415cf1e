"""The layers of a decoding step, each as the array operations that it comes to.

`operations` gives calls without arguments that read `x` and write `out`, memory that is there before: they are prepared
once for a number of sequences and then done again and again, so that a step is little more than these calls.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from toolkit.decoding.cache import Cache
from toolkit.decoding.step_attention import StepAttention
from toolkit.decoding.step_weights import PackedWeights
from toolkit.functional.activation import ACTIVATIONS
from toolkit.functional.arrays import Array
from toolkit.functional.few_rows import product_operands, worth_packing
from toolkit.models.inputs import Input
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.layers import FeedForward, GatedLinear, LayerNorm, Linear, Norm
from toolkit.nn.tape import Tape

# Deep matrices are divided into parts of so many rows, where there are at least so many sequences.
_DEPTH, _SEVERAL_ROWS = 256, 16
# So few rows are limited by the reading of weights where these come from memory.
_FEWEST_ROWS = 3

Operations = Iterator[Callable[[], object]]


class Places(NamedTuple):
    """What positions need to know of rows that are one token each."""

    positions: Array  # (N,)
    longest: int


class Now:
    """What all layers of a step share: the cache, memory that they use in turn, and what differs from step to step."""

    new: slice  # the entries of the new tokens
    read: Array | None  # (B, W, entries) which entries each sequence reads
    places: Places

    def __init__(
        self,
        cache: Cache,
        texts: int,
        count: int,
        attention: StepAttention,
        weights: PackedWeights,
        streams: bool,
        tape: Tape,
    ):
        self.cache, self.texts, self.count, self.attention = cache, texts, count, attention
        self.weights, self.tape, self.dtype = weights, tape, attention.dtype
        self.streams = streams  # whether a step reads more weights than the cache holds
        self._arrays: dict[tuple[str, int], Array] = {}

    def array(self, name: str, width: int) -> Array:
        """(N, width) of memory, the same for all who ask with this name."""
        key = name, width
        if key not in self._arrays:
            self._arrays[key] = self.tape.empty((self.count, width), self.dtype)
        return self._arrays[key]


def linear_operations(x: Array, weight: Array, bias: Array | None, out: Array, now: Now) -> Operations:
    """out = x W + b."""
    rows, depth = x.shape
    if now.streams and rows <= _FEWEST_ROWS and weight.strides[0] < weight.strides[1]:
        # From memory `vecdot` reads 30 GB/s, BLAS's product of a vector with a matrix that lies transposed 13.
        yield partial(np.vecdot, weight.T[:, None], x, out.T)
    elif not worth_packing(weight, rows) and depth % _DEPTH == 0 and rows >= _SEVERAL_ROWS:
        # The product of a deep matrix is the sum of products of shallow ones, which are small enough for tiles.
        sums = now.tape.empty((depth // _DEPTH, *out.shape), x.dtype)
        for number, part in enumerate(sums):
            columns = slice(number * _DEPTH, (number + 1) * _DEPTH)
            yield from _product_operations(x[:, columns], weight[columns], part, now)
        yield partial(np.add.reduce, sums, axis=0, out=out)
    else:
        yield from _product_operations(x, weight, out, now)
    if bias is not None:
        yield partial(np.add, out, bias, out)


def _product_operations(x: Array, weight: Array, out: Array, now: Now) -> Operations:
    for operands in product_operands(x, now.weights.for_rows(weight, len(x)), out):
        yield partial(np.matmul, *operands)


def of_linear(module: Linear, x: Array, out: Array, now: Now) -> Operations:
    return linear_operations(x, module.weight.data, module.bias and module.bias.data, out, now)


def read_tokens(module: Input, ids: Array, places: Places, out: Array, tape: Tape) -> None:
    """Embeddings and positions of the new tokens.  Shapes: ids (N,), out (N, D)."""
    embedding, positions = module.embedding, module.positions
    np.take(embedding.table.data, module.rows_of(ids), 0, out, "clip")
    if embedding.scale != 1.0:
        np.multiply(out, embedding.scale, out)
    if positions:
        out[...] = positions.forward(out, places, tape)


class StepNorm:
    """Layer norm, or root mean square norm, with the division by D taken into gain and eps:

    y = c · (√D gain) / √(Σ c² + D eps) + bias        with c = x - mean(x), or x
    """

    def __init__(self, norm: Norm):
        width = len(norm.gain.data)
        self._gain = norm.gain.data * math.sqrt(width)
        self._eps = np.full(1, norm.eps * width, self._gain.dtype)
        self._centres = isinstance(norm, LayerNorm)
        self._average = np.full((width, 1), 1 / width, self._gain.dtype)
        self._bias = norm.bias.data if self._centres and norm.bias else None

    def operations(self, x: Array, out: Array, now: Now) -> Operations:
        """`out` may be `x`."""
        if len(x) == 1:
            yield partial(self._of_one_row, x[0], out[0])
            return
        mean, spread = now.array("mean", 1), now.array("spread", 1)
        if self._centres:
            yield partial(np.matmul, x, self._average, mean)
            yield partial(np.subtract, x, mean, out)
            x = out
        yield partial(np.vecdot, x, x, spread[:, 0])
        yield partial(np.add, spread, self._eps, spread)
        yield partial(np.sqrt, spread, spread)
        yield partial(np.divide, x, spread, out)
        yield partial(np.multiply, out, self._gain, out)
        if self._bias is not None:
            yield partial(np.add, out, self._bias, out)

    def _of_one_row(self, x: Array, out: Array) -> None:
        """The same of (D,) -> (D,), where numbers are cheaper than arrays of one."""
        if self._centres:
            x = np.subtract(x, x.dot(self._average[:, 0]), out)
        np.divide(x, math.sqrt(x.dot(x) + self._eps[0]), out)
        np.multiply(out, self._gain, out)
        if self._bias is not None:
            np.add(out, self._bias, out)


def self_attention_operations(module: SelfAttention, number: int, x: Array, out: Array, now: Now) -> Operations:
    """Self-attention of the new tokens over the cache, where their keys and values are put first."""
    width = module.heads * module.head_width
    whole = module.query_key_value.weight.shape[1]
    key_value_width = (whole - width) // 2
    projected, context = now.array("projected", whole), now.array("context", width)
    yield from of_linear(module.query_key_value, x, projected, now)
    if module.rotary:
        turned = projected[:, :-key_value_width].reshape(len(x), -1, module.head_width)
        yield lambda: module.rotary.turn(turned, now.places, now.tape)
    new_key, new_value = (
        projected[:, begin : begin + key_value_width].reshape(now.texts, -1, key_value_width)
        for begin in (width, width + key_value_width)
    )
    query, keys, values, attend = projected[:, :width], None, None, None

    def over_the_cache() -> None:
        nonlocal keys, values, attend
        stored = now.cache.room(module, new_key)
        if stored[0] is not keys:  # at first, and where there was no more room
            keys, values = stored
            by_head = (x.reshape(*x.shape[:2], -1, module.head_width) for x in stored)
            attend = now.attention.prepared(query, *by_head, context, number)
        keys[:, now.new], values[:, now.new] = new_key, new_value
        attend(now.new.stop, now.read)

    yield over_the_cache
    yield from of_linear(module.output, context, out, now)


def cross_attention_operations(module: CrossAttention, number: int, x: Array, out: Array, now: Now) -> Operations:
    """Cross-attention of the new tokens to the memory of their text."""
    query, context = (now.array(name, x.shape[1]) for name in ("query", "context"))
    yield from of_linear(module.query, x, query, now)
    keys, values, real = now.cache.memory(module)
    read = None if real is None else real[:, None].astype(now.dtype)
    yield partial(now.attention.prepared(query, keys, values, context, number), keys.shape[1], read)
    yield from of_linear(module.output, context, out, now)


def feed_forward_operations(module: FeedForward, _number: int, x: Array, out: Array, now: Now) -> Operations:
    """The feed-forward network."""
    hidden = now.array("hidden", module.up.weight.shape[1])
    yield from of_linear(module.up, x, hidden, now)
    gated = isinstance(module.up, GatedLinear)
    passed, other = np.split(hidden, 2, axis=1) if gated else (hidden, None)
    yield partial(ACTIVATIONS["silu" if gated else module.up.activation], passed)
    if gated:
        hidden = now.array("passed", passed.shape[1])
        yield partial(np.multiply, passed, other, hidden)
    yield from of_linear(module.down, hidden, out, now)

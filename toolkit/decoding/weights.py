"""The weights of decoding steps: copies of a model's, prepared once for many steps.

Norms are folded into the maps that read them (`toolkit.models.folding`), the 1/√K of scores into the maps of queries,
and what several rows are multiplied with lies in the order in which it is read.
"""

import math
from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from toolkit.decoding.recording import recorder_of
from toolkit.functional.arrays import Array
from toolkit.functional.int8 import Int8Matrix
from toolkit.functional.linear import Packed, pack
from toolkit.functional.tuning import FEW, FIXED, Choice, choose
from toolkit.models.base import InputEmbedding
from toolkit.models.folding import MAPS, fold_norms
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.blocks import Stack
from toolkit.nn.layers import Linear
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model, Module, Parameter, aligned_zeros

# This many bytes of weights are still in the last cache when the next step wants them (one core of a server).
_CACHE_BYTES = 12 << 20
# All copies of a model together: those of a larger one would cost more than they are worth.
_MOST_PACKED_BYTES = 64 << 20
_ROOM = 32 << 20  # bytes, in which several of them are made; what none needs is never touched
# Parameters that are compared to see if a model has been trained since.
_SAMPLE = 4096


class PackedWeights:
    """Copies of a model's weights in the order in which products of few rows read them, each made when first wanted.

    They may be kept from one batch to the next, where `renew` says so.
    """

    def __init__(self) -> None:
        self._packed: dict[Parameter, Packed] = {}
        self._room = np.empty(0, np.uint8)
        self._sample: Array | None = None
        self._copies: dict[Parameter, Array | None] = {}  # with their biases as last rows, or not
        self._bytes = 0
        self._recorder: Model | None = None
        self._source = "memory"
        self._choice: Choice | None = None
        # Memory, and the state of a text that was decoded alone: each call takes them and leaves them when it is done.
        self.kept: list[tuple[Pool, Any]] = []

    def take(self) -> tuple[Pool, Any]:
        """Take what a call before has left, so that no other does; a new pool and None where there is nothing."""
        try:
            return self.kept.pop()
        except IndexError:
            return Pool(), None

    def renew(self, vector: Array) -> bool:
        """Forget all copies if the model, whose parameters are `vector`, has changed since the last time.

        A sample of the parameters is compared, which training, averaging and loading all change. Returns True for a
        changed model.
        """
        sample = vector[:: max(1, len(vector) // _SAMPLE)]
        changed = self._sample is None or not np.array_equal(sample, self._sample)
        if changed:
            self._packed, self._copies, self._bytes = {}, {}, 0
            self._sample, self._recorder, self.kept = sample.copy(), None, []
        return changed

    def recorder(self, model: Seq2Seq | GPT, kinds: Mapping[type[Module], type[Module]]) -> Model:
        """Return the model with leaves that record.

        kinds: see `recorder_of`. The model that is recorded is folded, unless that takes too much memory.
        """
        if self._recorder is None or self._recorder.original is not model:
            maps = sum(each.data.nbytes for each in _decoder(model)[1].parameters().values())
            prepare = self._prepare if self._bytes + maps <= _MOST_PACKED_BYTES else None
            is_large = maps + model.output.table.data.nbytes > _CACHE_BYTES
            self._source, self._choice = "memory" if is_large else "cache", None
            self._recorder = recorder_of(model, kinds, prepare)
        return self._recorder

    def kernel(self, rows: int) -> str:
        """Return what multiplies so many rows: "vecdot" or "matmul" by a weight as it lies, or "packed"."""
        choice = self._chosen()
        if choice.one == "rows":  # where there is no copy
            choice = choice._replace(one=FIXED[self._source].one)
        return choice.one if rows == 1 else choice.few if rows <= FEW else "packed"

    def with_bias(self, parameter: Parameter) -> Array | None:
        """Return the copy of a weight with its bias as last row, (D + 1, F), if one row is best multiplied by that."""
        return self._copies.get(parameter)

    def packed(self, parameter: Parameter, weight: Array) -> Array | Packed:
        """Return a packed copy of the weight (D, F) of a parameter; the weight itself where copies are too large."""
        if parameter not in self._packed and self._bytes + weight.nbytes <= _MOST_PACKED_BYTES:
            self._packed[parameter] = pack(weight, self._chosen().columns, self._empty)
            self._bytes += weight.nbytes
        return self._packed.get(parameter, weight)

    def _chosen(self) -> Choice:
        if self._choice is None:  # only where there is a product in float32
            self._choice = choose(self._source)
        return self._choice

    def _empty(self, shape: tuple[int, ...], dtype: type) -> Array:
        """Take memory from large pieces, whose pages the system may join to huge ones: a tenth faster for 4 rows."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if len(self._room) < size:
            self._room = aligned_zeros(max(size, _ROOM), np.uint8)
        array, self._room = self._room[:size], self._room[size + -size % 64 :]
        return array.view(dtype).reshape(shape)

    def _prepare(self, model: Seq2Seq | GPT) -> None:
        """Fold norms into the maps that read them, and the 1/√K of scores into the maps or norms of queries."""
        entry, stack = _decoder(model)
        if not any(parameter.quantized for parameter in stack.parameters().values()):  # else they have been folded
            fold_norms(entry, stack, own=self._copied)
        for part in [part for block in stack.blocks for part in vars(block).values()]:
            layer = getattr(part, "layer", None)
            if type(layer) in (SelfAttention, CrossAttention):
                self._scale_queries(layer, 1 / math.sqrt(layer.head_dim))
            for linear in [getattr(layer, name) for name in MAPS.get(type(layer), ())]:
                self._join(linear)

    def _join(self, linear: Linear) -> None:
        """Put the bias of a map, or zeros, below its weight, where one row is multiplied by both in one product."""
        if not linear.weight.quantized and self._chosen().one == "rows":
            linear.weight = self._copied(linear.weight)
            last = self._copies[linear.weight][-1]
            last[...] = 0 if linear.bias is None else linear.bias.data
            linear.bias = linear.bias and _holding(linear.bias, last)

    def _scale_queries(self, layer: SelfAttention | CrossAttention, scale: float) -> None:
        layer.is_scaled = True
        if norm := getattr(layer, "query_norm", None):
            norm.gain = _holding(norm.gain, norm.gain.data * norm.gain.data.dtype.type(scale))
            return
        queries = layer.query_key_value if isinstance(layer, SelfAttention) else layer.query
        factors = np.ones(queries.weight.shape[1], queries.weight.data.dtype)
        factors[: layer.num_heads * layer.head_dim] = scale
        if isinstance(queries.weight.data, Int8Matrix):
            queries.weight = _holding(queries.weight, queries.weight.data.scaled(factors))
        else:
            queries.weight = self._copied(queries.weight)
            queries.weight.data *= factors
        queries.bias = queries.bias and _holding(queries.bias, queries.bias.data * factors)

    def _copied(self, parameter: Parameter) -> Parameter:
        """Copy a parameter, unless it is a copy."""
        if parameter in self._copies:
            return parameter
        dtype, (depth, width) = parameter.data.dtype.type, parameter.shape
        joined = self._empty((depth + 1, width), dtype) if self._chosen().one == "rows" else None
        data = parameter.view(self._empty((depth * width,), dtype)) if joined is None else joined[:-1]
        data[...] = parameter.data
        found = _holding(parameter, data)
        self._copies[found] = joined
        self._bytes += data.nbytes
        return found


def _decoder(model: Seq2Seq | GPT) -> tuple[InputEmbedding, Stack]:
    return (model.trunk.input, model.trunk.decoder) if isinstance(model, GPT) else (model.target, model.decoder)


def _holding(parameter: Parameter, values: Array | Int8Matrix) -> Parameter:
    """Make a parameter like another one, with values of its own."""
    found = copy(parameter)
    found.data = values
    return found

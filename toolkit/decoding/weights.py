"""The weights of decoding steps: copies of a model's, prepared once for many steps.

Norms are folded into the maps that read them (`toolkit.models.folding`), the 1/√K of scores into the maps of queries,
and what several rows are multiplied with lies in the order in which it is read.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from toolkit.decoding.recording import recorder_of
from toolkit.functional.arrays import Array
from toolkit.functional.linear import Packed, pack
from toolkit.functional.tuning import FEW, FIXED, Choice, choose
from toolkit.models.folding import MAPS, fold_norms, fold_scales, holding, layers_of
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.memory import Pool, Reserve
from toolkit.nn.module import Model, Module, Parameter

# This many bytes of weights are still in the last cache when the next step wants them (one core of a server).
_CACHE_BYTES = 12 << 20
# All copies of a model together: those of a larger one would cost more than they are worth.
_MOST_PACKED_BYTES = 64 << 20
# Parameters that are compared to see if a model has been trained since.
_SAMPLE = 4096


class PackedWeights:
    """Copies of a model's weights in the order in which products of few rows read them, each made when first wanted.

    They may be kept from one batch to the next, where `renew` says so.
    """

    def __init__(self) -> None:
        self._packed: dict[Parameter, Packed] = {}
        self._memory = Reserve()
        self._sample: Array | None = None
        self._copies: dict[Parameter, Array | None] = {}  # with their biases as last rows, or not
        self._bytes = 0
        self._recorder: Model | None = None
        self._source = "memory"
        self._choice: Choice | None = None
        # By "last": the memory of the last call, and the state of its last text if that was decoded alone. Each call
        # takes them away, so that no other has them too, and leaves them to the next.
        self.kept: dict[str, tuple[Pool, Any]] = {}

    def renew(self, vector: Array) -> bool:
        """Forget all copies if the model, whose parameters are `vector`, has changed since the last time.

        A sample of the parameters is compared, which training, averaging and loading all change. Returns True for a
        changed model.
        """
        sample = vector[:: max(1, len(vector) // _SAMPLE)]
        changed = self._sample is None or not np.array_equal(sample, self._sample)
        if changed:
            self._packed, self._copies, self._bytes = {}, {}, 0
            self._sample, self._recorder, self.kept = sample.copy(), None, {}
        return changed

    def recorder(self, model: Seq2Seq | GPT, kinds: Mapping[type[Module], type[Module]]) -> Model:
        """Return the model with leaves that record.

        kinds: see `recorder_of`. The model that is recorded is folded, unless that takes too much memory.
        """
        if self._recorder is None or self._recorder.original is not model:
            decoder = model.trunk.decoder if isinstance(model, GPT) else model.decoder
            maps = sum(each.data.nbytes for each in decoder.parameters().values())
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
            self._packed[parameter] = pack(weight, self._chosen().columns, self._memory.empty)
            self._bytes += weight.nbytes
        return self._packed.get(parameter, weight)

    def _chosen(self) -> Choice:
        if self._choice is None:  # only where there is a product in float32
            self._choice = choose(self._source)
        return self._choice

    def _prepare(self, model: Seq2Seq | GPT) -> None:
        """Fold what can be, and put biases, or zeros, below weights where one product multiplies one row by both."""
        is_gpt = isinstance(model, GPT)
        entry, stack = (model.trunk.input, model.trunk.decoder) if is_gpt else (model.target, model.decoder)
        fold_norms(entry, stack, own=self._copied)
        fold_scales(stack, self._copied)
        for layer in layers_of(stack):
            for linear in (getattr(layer, name) for name in MAPS[type(layer)]):
                if not linear.weight.quantized and self._chosen().one == "rows":
                    linear.weight = self._copied(linear.weight)
                    last = self._copies[linear.weight][-1]
                    last[...] = 0 if linear.bias is None else linear.bias.data
                    linear.bias = linear.bias and holding(linear.bias, last)

    def _copied(self, parameter: Parameter) -> Parameter:
        """Copy a parameter, unless it is a copy."""
        if parameter in self._copies:
            return parameter
        dtype, (depth, width) = parameter.data.dtype.type, parameter.shape
        joined = self._memory.empty((depth + 1, width), dtype) if self._chosen().one == "rows" else None
        data = parameter.view(self._memory.empty((depth * width,), dtype)) if joined is None else joined[:-1]
        data[...] = parameter.data
        found = holding(parameter, data)
        self._copies[found] = joined
        self._bytes += data.nbytes
        return found

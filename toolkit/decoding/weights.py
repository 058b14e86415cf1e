"""The weights of decoding steps: a model's with norms and scales folded into maps, prepared once for many steps."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from toolkit.decoding.recording import recorder_of
from toolkit.functional.arrays import Array
from toolkit.functional.linear import Packed, pack
from toolkit.functional.tuning import FEW, FIXED, Choice, choose
from toolkit.models.folding import fold_copies
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.memory import Pool, Reserve
from toolkit.nn.module import Model, Module, Parameter

# This many bytes of weights are still in the last cache when the next step wants them (one core of a server).
_CACHE_BYTES = 12 << 20
# All copies of a model together: those of a larger one would cost more than they are worth.
_MOST_PACKED_BYTES = 64 << 20
# Entries of matrices that are compared to see if a model has been trained since.
_SAMPLE = 4096


class PackedWeights:
    """Copies of a model's weights in the order in which products of few rows read them, each made when first wanted.

    They may be kept from one batch to the next, where `renew` says so.
    """

    def __init__(self) -> None:
        self._packed: dict[Parameter, Packed] = {}
        self._memory = Reserve()
        self._sample: Array | None = None
        self._bytes = 0
        self._recorder: Model | None = None
        self._source = "memory"
        self._choice: Choice | None = None
        # "last": the pool of the last call, and the state of its last text if alone; the next call takes them away.
        self.kept: dict[str, tuple[Pool, Any]] = {}

    def renew(self, model: Seq2Seq | GPT) -> bool:
        """Forget all copies if the model has changed since the last time; returns True for a changed one.

        All gains and biases are compared, and a sample of the matrices: training, averaging and loading change both.
        """
        matrices, others = np.split(model.vector, [model.decayed])
        sample = np.concatenate((matrices[:: max(1, len(matrices) // _SAMPLE)], others))
        changed = self._sample is None or not np.array_equal(sample, self._sample)
        if changed:
            self._packed, self._bytes, self._sample, self._recorder, self.kept = {}, 0, sample, None, {}
        return changed

    def recorder(self, model: Seq2Seq | GPT, kinds: Mapping[type[Module], type[Module]]) -> Model:
        """Return the model with leaves that record.

        kinds: see `recorder_of`. The model that is recorded is folded, unless that takes too much memory.
        """
        if self._recorder is None or self._recorder.original is not model:
            decoder = model.trunk.decoder if isinstance(model, GPT) else model.decoder
            maps = sum(each.data.nbytes for each in decoder.parameters().values())
            is_large = maps + model.output.table.data.nbytes > _CACHE_BYTES
            self._source, self._choice = "memory" if is_large else "cache", None
            fits = self._bytes + maps <= _MOST_PACKED_BYTES
            self._bytes += maps if fits else 0
            self._recorder = recorder_of(model, kinds, self._prepare if fits else None)
        return self._recorder

    def kernel(self, rows: int) -> str:
        """Return what multiplies so many rows: "vecdot" or "matmul" by a weight as it lies, or "packed"."""
        choice = self._chosen()
        if choice.one == "rows":  # where there is no copy
            choice = choice._replace(one=FIXED[self._source].one)
        return choice.one if rows == 1 else choice.few if rows <= FEW else "packed"

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
        trunk = (model.trunk.input, model.trunk.decoder) if isinstance(model, GPT) else (model.target, model.decoder)
        fold_copies(*trunk, self._memory.empty, joins=lambda: self._chosen().one == "rows")

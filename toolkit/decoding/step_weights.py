"""Weights in the order in which products of few rows read them."""

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.functional.few_rows import Packed, pack, worth_packing

# One row reads a matrix from its beginning to its end as it lies.
_LEAST_ROWS = 2
# All copies of a model together: those of a larger one would cost more than they are worth.
_MOST_BYTES = 64 << 20
# Parameters that are looked at to see whether a model has been trained since.
_SAMPLE = 4096


class PackedWeights:
    """Copies of a model's weights for decoding steps of several rows, each made when it is first wanted.

    They may be kept from one batch to the next, where `renew` says so.
    """

    def __init__(self) -> None:
        self._packed: dict[tuple[int, ...], Packed] = {}
        self._sample: Array | None = None
        self._bytes = 0

    def renew(self, vector: Array) -> bool:
        """Forget all copies if the model, whose parameters are `vector`, is another one than the last time.

        Every so many parameters are compared, which training, averaging and loading all change. Says whether it is
        another one.
        """
        sample = vector[:: max(1, len(vector) // _SAMPLE)]
        is_another = self._sample is None or not np.array_equal(sample, self._sample)
        if is_another:
            self._packed, self._bytes, self._sample = {}, 0, sample.copy()
        return is_another

    def for_rows(self, weight: Array, rows: int) -> Array | Packed:
        """A weight (D, F), a parameter or the transpose of one, as it is best multiplied by so many rows."""
        key = weight.ctypes.data, *weight.shape, *weight.strides
        wanted = rows >= _LEAST_ROWS and worth_packing(weight, rows)
        if wanted and key not in self._packed and self._bytes + weight.nbytes <= _MOST_BYTES:
            self._packed[key] = pack(weight)
            self._bytes += weight.nbytes
        return self._packed.get(key, weight) if wanted else weight

"""Reading the real pass: modules show a recorder what they compute, and it keeps what was asked for.

Pictures of attention, alignments and worked examples are made of such records, and never compute a second time what
the model computes.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.nn.module import Module
from toolkit.nn.rows import CrossSpan


class Record(NamedTuple):
    """One value that a module showed."""

    owner: Module
    name: str
    value: Array
    where: Any  # what part of the batch it belongs to, as the module says


class Recorder:
    """Copies of what some modules show during a pass, in order.

    The copy is necessary: modules write to lent memory, and in place, so an array is good only until the next
    operation. owners: the modules to listen to (None: all). names: the values to keep of them (None: all).
    """

    def __init__(self, owners: Collection[Module] | None = None, names: Collection[str] | None = None):
        self._owners = None if owners is None else set(owners)
        self._names = None if names is None else set(names)
        self.records: list[Record] = []

    def wants(self, owner: Module, name: str) -> bool:
        """True for a value that would be kept: others that only a recorder needs are not computed."""
        return (self._owners is None or owner in self._owners) and (self._names is None or name in self._names)

    def record(self, owner: Module, name: str, value: Array, where: Any = None) -> None:
        if self.wants(owner, name):
            self.records.append(Record(owner, name, value.copy(), where))

    def attention_maps(self, owner: Module) -> list[Array]:
        """Cut what an attention module showed into one map for each sequence, in their order: (H, T, S), where
        [h, t, s] is how much of what query t takes with head h comes from key s.

        Of several passes, one after the other. In a decoding step of a beam search the queries of a map are the beams
        of one sentence, and its keys include those beyond a shorter memory or past, with weight 0.
        """
        maps = []
        for record in self.records:
            if record.owner is owner and record.name == "probabilities":
                by_query = record.value.swapaxes(-1, -2)
                maps += [each[:, :, :length] for each, length in zip(by_query, _key_lengths(record), strict=True)]
        return maps


def _key_lengths(record: Record) -> Array:
    """Count the real keys of each sequence."""
    count, longest = len(record.value), record.value.shape[2]
    real = record.where.real if isinstance(record.where, CrossSpan) else None
    return np.full(count, longest) if real is None else real.sum(axis=1)

"""Training and validation pairs that stay on the disk, as ids and as text."""

from collections.abc import Iterator, Sequence

import numpy as np

from toolkit.data.batches import Example
from toolkit.data.store import RaggedStore


class StoredExamples(Sequence[Example]):
    """Pairs as ids, int32. Batches are made from their lengths alone, which are in memory: 8 bytes a pair."""

    def __init__(self, source: RaggedStore, target: RaggedStore):
        self.source, self.target = source, target

    @property
    def source_lengths(self) -> np.ndarray:
        """Tokens of every source, (examples,)."""
        return self.source.lengths

    @property
    def target_lengths(self) -> np.ndarray:
        """Tokens of every target, (examples,)."""
        return self.target.lengths

    def target_ids(self, size: int = 1 << 20) -> Iterator[np.ndarray]:
        """The ids of all targets one after the other, in arrays of at most `size`."""
        values = self.target.values
        return (values[begin : begin + size] for begin in range(0, len(values), size))

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Example:
        return Example(self.source[index], self.target[index])


class StoredPairs(Sequence[tuple[str, str]]):
    """Pairs as text, from stores of UTF-8; rows: (pairs,) which of the stored texts they are."""

    def __init__(self, source: RaggedStore, target: RaggedStore, rows: np.ndarray):
        self.source, self.target, self.rows = source, target, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[str, str]:
        row = int(self.rows[index])
        return stored_text(self.source, row), stored_text(self.target, row)


def stored_text(store: RaggedStore, row: int) -> str:
    """One text of a store of UTF-8."""
    return store[row].tobytes().decode()

"""The KV cache: keys and values of all tokens so far, so that a decoding step computes one row a sequence.

A decoding step is the model's ordinary `forward` on rows whose sequences have a past; attention modules add their
keys and values here and read back everything they have seen.
"""

from functools import cached_property

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows, Span

_FIRST_CAPACITY = 32


class StepRows(Rows):
    """One row for each sequence, `beams` consecutive ones to a memory: what a decoding step consists of.

    The same answers as `Rows` gives, without looking at the sequences one by one.
    """

    def __init__(self, past: Array, beams: int, memory: Rows | None, cache: "Cache"):
        super().__init__(np.ones(len(past), np.int64), past=past, memory=memory, cache=cache)
        self._beams = beams

    @cached_property
    def positions(self) -> Array:
        return self.past

    @cached_property
    def spans(self) -> list[Span]:
        return _one_span(len(self.past), 1)

    @cached_property
    def memory_spans(self) -> list[Span]:
        return _one_span(len(self.past) // self._beams, self._beams)


def _one_span(count: int, length: int) -> list[Span]:
    return [Span(slice(0, count * length), slice(0, count), count, length)] if count else []


class Cache:
    """Keys and values of `sequences` sequences, (sequences, time, D) for every attention module.

    memory: the rows of the encoder's output, in the order in which sequences refer to it. Each memory is shared by
    `sequences / memories` consecutive sequences (the beams of a sentence). capacity: tokens of each sequence that there
    is room for at first; what is not used of it takes no memory.
    """

    def __init__(self, sequences: int, memory: Rows | None = None, capacity: int = _FIRST_CAPACITY):
        self.lengths = np.zeros(sequences, np.int64)
        self._capacity = capacity
        self._placed: tuple[Rows, int | None] | None = None
        self._layers: dict[Module, tuple[Array, Array]] = {}
        self._memories: dict[Module, tuple[Array, Array]] = {}
        self._memory_lengths = None if memory is None else memory.lengths
        self._memory_rows = memory

    def rows(self, lengths: Array) -> Rows:
        """The rows of the next tokens, `lengths` of them for each sequence."""
        memories = 0 if self._memory_lengths is None else len(self._memory_lengths)
        beams = len(self.lengths) // memories if memories else 1
        if (lengths == 1).all():
            return StepRows(self.lengths.copy(), beams, self._memory_rows, self)
        memory_of = np.repeat(np.arange(memories), beams) if memories else None
        return Rows(lengths, past=self.lengths.copy(), memory=self._memory_rows, memory_of=memory_of, cache=self)

    def advance(self, lengths: Array) -> None:
        """Count the tokens of a forward pass that has ended as past."""
        self.lengths += lengths

    def extend(self, owner: Module, key: Array, value: Array, rows: Rows) -> tuple[Array, Array]:
        """Store the new rows (N, D) and return all keys and values, (sequences, time, D); what lies beyond a
        sequence's length is zero or stale, and finite."""
        layer = self._room_for(owner, rows.longest, key)
        begin, sequences, length = self._common_past(rows), len(rows.lengths), int(rows.lengths[0])
        for stored, new in zip(layer, (key, value), strict=True):
            if begin is None:
                stored[rows.sequence_of, rows.positions] = new
            else:
                stored[:sequences, begin : begin + length] = new.reshape(sequences, length, -1)
        return layer

    def _common_past(self, rows: Rows) -> int | None:
        """Where the new rows of all sequences begin; None if that or their number differs. Every layer asks this."""
        if self._placed is None or self._placed[0] is not rows:
            uniform = (rows.lengths == rows.lengths[0]).all() and (rows.past == rows.past[0]).all()
            self._placed = rows, int(rows.past[0]) if uniform else None
        return self._placed[1]

    def _room_for(self, owner: Module, time: int, like: Array) -> tuple[Array, Array]:
        """The stored arrays of a module, made or doubled so that `time` tokens fit."""
        layer = self._layers.get(owner)
        if layer is None or layer[0].shape[1] < time:
            held = 0 if layer is None else layer[0].shape[1]
            capacity = max(self._capacity, 2 * held, time)
            # Zeros, not arbitrary memory: an invisible value is multiplied by probability 0, and 0 · NaN is NaN.
            grown = tuple(np.zeros((len(self.lengths), capacity, like.shape[1]), like.dtype) for _ in range(2))
            for new, old in zip(grown, layer or (), strict=False):
                new[:, :held] = old
            self._layers[owner] = layer = grown
        return layer

    def has_memory(self, owner: Module) -> bool:
        return owner in self._memories

    def store_memory(self, owner: Module, key: Array, value: Array) -> None:
        """Keep a cross-attention's keys and values of the memory, (M, D), as (memories, longest, D)."""
        rows = self._memory_rows
        padded = []
        for part in (key, value):
            stack = np.zeros((len(rows.lengths), rows.longest, part.shape[1]), part.dtype)
            stack[rows.sequence_of, rows.positions] = part
            padded.append(stack)
        self._memories[owner] = tuple(padded)

    def memory(self, owner: Module) -> tuple[Array, Array, Array | None]:
        """Keys and values (memories, S, D) of the memory, and which of them are real (None: all)."""
        longest, real = self._visible
        key, value = self._memories[owner]
        return key[:, :longest], value[:, :longest], real

    @cached_property
    def _visible(self) -> tuple[int, Array | None]:
        """Keys of the longest memory, and which keys of each are real."""
        longest = int(self._memory_lengths.max(initial=0))
        real = np.arange(longest) < self._memory_lengths[:, None]
        return longest, None if real.all() else real

    def select(self, origins: Array) -> None:
        """Sequence i becomes a copy of sequence origins[i]; there may be fewer of them afterwards, or more."""
        time = int(self.lengths.max(initial=0))
        self.lengths = self.lengths[origins]
        _select(self._layers, origins, time)

    def select_memories(self, origins: Array) -> None:
        """The same for the memories."""
        self._memory_lengths = self._memory_lengths[origins]
        self.__dict__.pop("_visible", None)
        _select(self._memories, origins, self._memory_rows.longest)


def _select(layers: dict[Module, tuple[Array, Array]], origins: Array, time: int) -> None:
    """Rearrange stored arrays (sequences, time, D) in place; only rows that change are copied."""
    count = len(origins)
    changed = np.flatnonzero(origins != np.arange(count))
    moved = origins[changed]
    for owner, layer in layers.items():
        if count > len(layer[0]):
            layer = tuple(_grown(stored, count, time) for stored in layer)
        if len(changed):
            for stored in layer:
                stored[changed, :time] = stored[moved, :time]
        layers[owner] = tuple(stored[:count] for stored in layer)


def _grown(stored: Array, count: int, time: int) -> Array:
    grown = np.zeros((count, *stored.shape[1:]), stored.dtype)
    grown[: len(stored), :time] = stored[:, :time]
    return grown

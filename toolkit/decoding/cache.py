"""The KV cache: keys and values of all tokens so far, so that a decoding step computes one row a sequence.

The beams of a text share its entries, and a mask says which of them each beam has read: its own tokens and those of the
beams that it descends from. So nothing is copied where a beam search goes on with other beams, only the mask changes,
and the beams of a text are multiplied with its entries together.
"""

from functools import cached_property, lru_cache

import numpy as np

from toolkit.functional.arrays import Array, Empty
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows

_FIRST_CAPACITY = 32

KeysAndValues = tuple[Array, Array]


class Cache:
    """Keys and values of N sequences that belong to texts, N / B consecutive ones to each of B texts.

    They are stored as (B, entries, D) for every attention module. `lengths` says how many tokens each sequence has.
    memory: the rows of the encoder's output, one sequence of them for each text. capacity: entries of each text that
    there is room for at first; what is not used of it takes no memory. empty: lends memory.

    Two ways to read go together. The ordinary `forward` reads any number of tokens of every sequence: `rows`, `extend`,
    `advance`. A decoding step reads one of each: `begin_step`, `room`, `end_step`.
    """

    def __init__(
        self, sequences: int, memory: Rows | None = None, capacity: int = _FIRST_CAPACITY, empty: Empty = np.empty
    ):
        self.lengths = np.zeros(sequences, np.int64)
        self.moves = 0  # how often texts have changed places
        self._beams = 1
        self._capacity, self._empty = capacity, empty
        self._entries = 0  # how many of every text are in use
        self._layers: dict[Module, KeysAndValues] = {}
        # (B, N / B, capacity): 1 where a sequence has read an entry, otherwise 0. None: entry t of every text is the
        # token t of its only sequence. With several beams too: then every sequence has entries of its own.
        self._read: Array | None = None
        self._memories: dict[Module, KeysAndValues] = {}
        self._memory_rows = memory
        self._memory_lengths = None if memory is None else memory.lengths

    @property
    def texts(self) -> int:
        """B, how many texts the sequences belong to."""
        return len(self.lengths) // self._beams

    def rows(self, lengths: Array) -> Rows:
        """The rows of the next tokens, `lengths` of them for each sequence."""
        self._separate()
        memories = 0 if self._memory_lengths is None else len(self._memory_lengths)
        memory_of = np.repeat(np.arange(memories), len(lengths) // memories) if memories else None
        return Rows(lengths, past=self.lengths.copy(), memory=self._memory_rows, memory_of=memory_of, cache=self)

    def extend(self, owner: Module, key: Array, value: Array, rows: Rows) -> KeysAndValues:
        """Store the new rows (N, D) and return all keys and values, (sequences, time, D); what lies beyond a
        sequence's length is zero or stale, and finite."""
        layer = self._room_for(owner, rows.longest, key, np.zeros)
        begin, sequences, length = rows.past[:1], len(rows.lengths), int(rows.lengths[0])
        uniform = (rows.lengths == length).all() and (rows.past == begin).all()
        for stored, new in zip(layer, (key, value), strict=True):
            if uniform:
                stored[:, int(begin[0]) : int(begin[0]) + length] = new.reshape(sequences, length, new.shape[1])
            else:
                stored[rows.sequence_of, rows.positions] = new
        return layer

    def advance(self, lengths: Array) -> None:
        """Count the tokens of a forward pass that has ended as past."""
        self.lengths += lengths
        self._entries = int(self.lengths.max(initial=0))

    def forget(self, sequences: Array) -> None:
        """Let some sequences, (N,) of bool, be as if they had read nothing."""
        self.keep(np.where(sequences, 0, self.lengths))

    def keep(self, lengths: Array) -> None:
        """Let every sequence be as if it had read no more than its first tokens, so many of them.  Shapes: (N,)."""
        self._separate()
        np.minimum(self.lengths, lengths, out=self.lengths)
        self._entries = int(self.lengths.max(initial=0))

    def begin_step(self, dtype: type) -> tuple[slice, Array | None]:
        """Where the new tokens of every text are stored, and (B, N / B, entries) which entries each sequence reads,
        the new ones included (None: all)."""
        new = slice(self._entries, self._entries + self._beams)
        if self._read is None and self._beams == 1 and (self.lengths == self._entries).all():
            return new, None
        self._share(dtype)
        new = slice(self._entries, self._entries + self._beams)
        if self._read.shape[2] < new.stop:
            grown = np.zeros((*self._read.shape[:2], 2 * new.stop), dtype)
            grown[:, :, : self._entries] = self._read[:, :, : self._entries]
            self._read = grown
        self._read[:, :, new] = _own_entries(self._beams)
        return new, self._read[:, :, : new.stop]

    def room(self, owner: Module, like: Array) -> KeysAndValues:
        """The keys and values of a module, (B, entries, D), with room for those of a step that has begun."""
        return self._room_for(owner, self._entries + self._beams, like, self._empty)

    def end_step(self) -> None:
        """Count the tokens of the step as past."""
        self._entries += self._beams
        self.lengths += 1

    def _room_for(self, owner: Module, entries: int, like: Array, empty: Empty) -> KeysAndValues:
        """The stored arrays of a module, made or doubled so that so many entries fit.

        empty: lends memory for them. A step writes the same entries of all texts. Where texts are of unequal length, it
        must be zeros: what is not read is multiplied by 0, and 0 · NaN is NaN.
        """
        layer = self._layers.get(owner)
        if layer is None or layer[0].shape[1] < entries:
            texts = len(self.lengths) if self._read is None else len(self._read)
            shape = texts, max(self._capacity, 2 * self._entries, entries), like.shape[-1]
            grown = empty(shape, like.dtype), empty(shape, like.dtype)
            for new, old in zip(grown, layer or (), strict=False):
                new[:, : self._entries] = old[:, : self._entries]
            self._layers[owner] = layer = grown
        return layer

    def _share(self, dtype: type = np.float32) -> None:
        """Let the sequences of a text share its entries."""
        if self._read is not None:
            return
        beams, entries = self._beams, self._entries
        texts = len(self.lengths) // beams
        own = (np.arange(entries) < self.lengths[:, None]).reshape(texts, beams, entries)
        self._read = np.zeros((texts, beams, max(self._capacity, beams * entries)), dtype)
        for beam in range(beams):
            self._read[:, beam, beam * entries : (beam + 1) * entries] = own[:, beam]
        if beams > 1:
            self._entries = beams * entries
            for owner, layer in self._layers.items():
                self._layers[owner] = tuple(x[:, :entries].reshape(texts, self._entries, x.shape[2]) for x in layer)

    def _separate(self) -> None:
        """Give every sequence entries of its own, its tokens in order."""
        if self._read is None:
            return
        read = self._read[:, :, : self._entries].reshape(len(self.lengths), -1)
        self._entries = longest = int(self.lengths.max(initial=0))
        order = np.argsort(read == 0, axis=1, kind="stable")[:, :longest]
        text_of = np.repeat(np.arange(len(self._read)), self._beams)[:, None]
        for owner, layer in self._layers.items():
            self._layers[owner] = tuple(stored[text_of, order] for stored in layer)
        self._read = None

    def select(self, texts: Array, sequences: Array) -> None:
        """Text i becomes what texts[i] was, and sequence j a copy of sequences[j], one of the same text.

        There may be fewer of them afterwards. Of sequences there may be more: the texts then have several each.
        """
        parents = sequences.reshape(len(texts), -1) - texts[:, None] * self._beams
        beams = parents.shape[1]
        if beams > 1 or self._beams > 1:
            self._share()
        moved, stay = bool((texts != np.arange(len(texts))).any()), len(texts) == self.texts
        self.lengths, self._beams = self.lengths[sequences], beams
        if self._read is not None:
            self._read = self._read[texts[:, None], parents]
        if stay and not moved:
            return
        self.moves += moved
        _select(self._layers, texts, self._entries)
        if self._memory_lengths is not None:
            self._memory_lengths = self._memory_lengths[texts]
            self.__dict__.pop("_visible", None)
            _select(self._memories, texts, self._memory_rows.longest)

    def has_memory(self, owner: Module) -> bool:
        return owner in self._memories

    def store_memory(self, owner: Module, key: Array, value: Array) -> None:
        """Keep a cross-attention's keys and values of the memory, (M, H, K), as (B, longest, H, K).

        What belongs to one head lies together: it is read as a whole, step after step.
        """
        rows = self._memory_rows
        padded = []
        for part in (key, value):
            stack = np.zeros((len(rows.lengths), part.shape[1], rows.longest, part.shape[2]), part.dtype)
            by_key = stack.swapaxes(1, 2)
            by_key[rows.sequence_of, rows.positions] = part
            padded.append(by_key)
        self._memories[owner] = tuple(padded)

    def memory(self, owner: Module) -> tuple[Array, Array, Array | None]:
        """Keys and values (B, S, H, K) of the memory, and which of them are real, (B, S) of bool (None: all)."""
        longest, real = self._visible
        key, value = self._memories[owner]
        return key[:, :longest], value[:, :longest], real

    @cached_property
    def _visible(self) -> tuple[int, Array | None]:
        """Keys of the longest memory, and which keys of each are real."""
        longest = int(self._memory_lengths.max(initial=0))
        real = np.arange(longest) < self._memory_lengths[:, None]
        return longest, None if real.all() else real


def _select(layers: dict[Module, KeysAndValues], origins: Array, entries: int) -> None:
    """Rearrange stored arrays (texts, entries, D) in place; only those that change are copied."""
    count = len(origins)
    changed = np.flatnonzero(origins != np.arange(count))
    moved = origins[changed]
    for owner, layer in layers.items():
        if count > len(layer[0]):
            layers[owner] = tuple(stored[origins] for stored in layer)
            continue
        if len(changed):
            for stored in layer:
                stored[changed, :entries] = stored[moved, :entries]
        layers[owner] = tuple(stored[:count] for stored in layer)


@lru_cache(maxsize=64)
def _own_entries(beams: int) -> Array:
    """(W, W): of the new entries of a text, each beam reads its own."""
    return np.eye(beams, dtype=np.float32)

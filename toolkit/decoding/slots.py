"""A KV cache of places, in which texts begin and end at different times, each place with entries of its own.

A recorded step (`toolkit.decoding.step`) is bound to its arrays. Here these stay: a text that joins takes a place, one
that leaves frees it, and a step goes through the first few places, whoever is in them. What a place has held stays
readable until another text needs it, for prompts that begin as it did.
"""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.cache import Cache
from toolkit.functional.arrays import Array
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows

_FIRST_MEMORY = 64  # rows of a memory that there is room for at first
PART = 8  # places that attend to as many entries as the longest of them has
# A step goes through so many places, or a multiple of 16: each number has a recording of its own.
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


class SlotCache:
    """Keys and values of texts in P places, for W sequences each, which share the entries of their place.

    To a step it is a `Cache` of the first `texts` places. Every one of them takes part in every step; one in which
    nothing is written now puts the keys and values behind those that it holds, where they are written over.

    first, most: entries of a place, at first and at most. dtype: of the masks, the model's.
    """

    comes_again = True  # the number of texts, with the same version
    all_equal = False  # positions differ

    def __init__(self, places: int, width: int, first: int, most: int, dtype: type):
        self.width, self._most, self._dtype = width, most, dtype
        self.texts, self.version = 0, 0
        self.held = np.zeros(places, np.int64)  # entries in use
        self.counts = np.zeros(places, np.int64)  # tokens of each sequence: as many, with one sequence
        self.active = np.zeros(places, np.int64)  # 1 where something is written now
        self._capacity = first
        self._layers: dict[Module, Array] = {}  # (P, capacity + W, 2·D): the last W are for places that are full
        # (P, W, capacity + W): 1 where a sequence has read an entry. An idle one reads the first.
        self._read = np.zeros((places, width, self._capacity + width), dtype)
        self._read[:, :, 0] = 1
        self.tokens = np.zeros(self._read.shape, np.int64)  # what was read, by its position
        self._memories: dict[Module, Array] = {}  # (P, 2, H, room, K), zeros after the end of each
        self._memory_lengths = np.ones(places, np.int64)
        self._joining: tuple[Rows, Array] | None = None
        self._rows, self._columns = np.arange(places)[:, None], np.arange(width)
        self._begins = np.arange(0, places, PART)
        self.visible: tuple[int, Array | None] = (1, None)

    def size_for(self, texts: int) -> int:
        """Return how many places a step goes through for so many texts."""
        sizes = [size for size in _SIZES if size >= texts] or [texts + -texts % 16]
        return min(sizes[0], len(self.held))

    def arrange(self, texts: int) -> None:
        """Let a step go through the first places: this many, or a few more."""
        self.texts = self.size_for(texts)
        if self._memories:
            lengths = self._memory_lengths[: self.texts]
            longest = int((lengths * self.active[: self.texts]).max(initial=1))
            real = np.arange(longest) < lengths[:, None]
            self.visible = longest, None if real.all() else real.astype(self._dtype)

    @property
    def parts(self) -> list[slice]:
        """The texts that attend together: to as many entries as the longest of them has."""
        return [slice(begin, min(begin + PART, self.texts)) for begin in range(0, self.texts, PART)]

    def begin_step(self, dtype: type) -> tuple[tuple[Array, Array], list[tuple[int, Array]]]:
        """As that of a `Cache`."""
        count, active = self.texts, self.active[: self.texts]
        held, positions = self.held[:count], self.counts[:count] * active
        used = positions if self.width == 1 else held * active
        longest = [int(each) + self.width for each in np.maximum.reduceat(used, self._begins[: -(-count // PART)])]
        if (most := max(longest)) > self._capacity:
            self.make_room(most)
        rows, entries = self._rows[:count], held[:, None] + self._columns
        self._read[rows, self._columns, entries] = 1
        self.longest = positions.item(positions.argmax())
        self.lengths = positions if self.width == 1 else positions.repeat(self.width)
        return (rows, entries), [
            (seen, self._read[part, :, :seen]) for part, seen in zip(self.parts, longest, strict=True)
        ]

    def room(self, owner: Module, like: Array) -> Array:
        """As that of a `Cache`."""
        return self.stored(owner, like)[: self.texts]

    def memory(self, owner: Module) -> Array:
        """As that of a `Cache`."""
        return self._memories[owner][: self.texts].transpose(1, 0, 3, 2, 4)

    def end_step(self) -> None:
        """Count the tokens of the step as past, where something is written."""
        active = self.active[: self.texts]
        self.held[: self.texts] += self.width * active
        self.counts[: self.texts] += active

    def stored(self, owner: Module, like: Array) -> Array:
        """Return the keys and values of a module in all places, (P, entries, 2·D)."""
        if owner not in self._layers:
            shape = len(self.held), self._capacity + self.width, like.shape[-1]
            self._layers[owner] = np.zeros(shape, like.dtype)
        return self._layers[owner]

    def make_room(self, entries: int) -> None:
        """Make room for so many entries of each place, at most `most`."""
        if entries > self._capacity:
            self._grow(0, min(max(entries, 2 * self._capacity), self._most) - self._capacity)

    def make_places(self, places: int) -> None:
        """Have at least so many places."""
        if (more := places - len(self.held)) > 0:
            self._grow(more, 0)

    def _grow(self, places: int, entries: int) -> None:
        """Add places, and entries to each."""
        self.version += 1
        self._capacity += entries
        count, room = len(self.held) + places, self._capacity + self.width
        self._layers = {key: _grown(each, (count, room, each.shape[2])) for key, each in self._layers.items()}
        self._read, self.tokens = (_grown(each, (count, self.width, room)) for each in (self._read, self.tokens))
        if places:
            self.held, self.counts, self.active = (_grown(x, (count,)) for x in (self.held, self.counts, self.active))
            self._memories = {key: _grown(each, (count, *each.shape[1:])) for key, each in self._memories.items()}
            self._memory_lengths = np.maximum(_grown(self._memory_lengths, (count,)), 1)
            self._read[-places:, :, 0] = 1
            self._rows, self._begins = np.arange(count)[:, None], np.arange(0, count, PART)

    def note(self, ids: Array) -> None:
        """Note the ids that a step reads, (texts, W)."""
        self.tokens[self._rows[: self.texts], self._columns, self.counts[: self.texts, None]] = ids

    def wrote(self, place: int, ids: Array) -> None:
        """Count ids that the ordinary forward has read into a place."""
        begin = self.counts[place]
        self.tokens[place, :, begin : begin + len(ids)] = ids
        self.held[place] += len(ids)
        self.counts[place] += len(ids)

    def join(self, place: int) -> None:
        """Let a text take part in the next steps, whose sequences have all read what its place holds."""
        self._read[place, :, : self.held[place]] = 1
        self._read[place, :, self.held[place] :] = 0
        self.active[place] = 1

    def leave(self, place: int) -> None:
        """Let a text take no more part; what its place holds stays."""
        self.active[place] = 0
        self._read[place, :, 1:] = 0
        self._read[place, :, 0] = 1

    def clear(self, place: int) -> None:
        """Forget what a place holds, numbers that are not finite too."""
        self.held[place] = self.counts[place] = 0
        for stored in (*self._layers.values(), *self._memories.values()):
            stored[place] = 0

    def copy(self, origin: int, place: int, entries: int) -> None:
        """Copy the first entries of a place to another, which then holds no more."""
        for stored in self._layers.values():
            stored[place, :entries] = stored[origin, :entries]
        for memory in self._memories.values():
            memory[place] = memory[origin]
        self._memory_lengths[place] = self._memory_lengths[origin]
        self.tokens[place, :, :entries] = self.tokens[origin, :, :entries]
        self.held[place] = self.counts[place] = entries

    def swap(self, one: int, other: int) -> None:
        """Let two places change what they are."""
        entries, both = int(max(self.held[one], self.held[other])), [one, other]
        numbers = [self.held, self.counts, self.active, self._read, self.tokens, self._memory_lengths]
        for each in (*numbers, *(stored[:, :entries] for stored in self._layers.values()), *self._memories.values()):
            each[both] = each[both[::-1]]

    def select(self, places: Array, parents: Array) -> None:
        """Let beam w of places[b] go on from what its beam parents[b, w] has read.  Shapes: (B,), (B, W)."""
        self._read[places] = self._read[places[:, None], parents]

    def select_tokens(self, places: Array, parents: Array) -> None:
        """As `select`, of the ids, where they will be read again."""
        self.tokens[places] = self.tokens[places[:, None], parents]

    def spread(self, place: int, cache: Cache) -> None:
        """Put W sequences of equal length, read by themselves, into a place, one after the other."""
        length, width = cache.longest, self.width
        self.make_room(width * length)
        for owner, separate in cache.layers():
            own = separate[:, :length].reshape(width * length, separate.shape[2])
            self.stored(owner, separate)[place, : width * length] = own
        self._read[place] = 0
        for beam in range(width):
            self._read[place, beam, beam * length : (beam + 1) * length] = 1
        self.held[place], self.counts[place] = width * length, length
        self.active[place] = 1

    def common_prefixes(self, text: Array) -> Array:
        """Count the ids that each place holds and a text begins with, (P,)."""
        length = min(len(text), self._capacity)
        same = np.zeros((len(self.held), length + 1), bool)
        np.equal(self.tokens[:, 0, :length], text[:length], out=same[:, :length])
        return np.minimum(same.argmin(axis=1), self.held)

    def remember(self, rows: Rows, places: Sequence[int]) -> None:
        """Take the memory rows that `store_memory` gets next as those of these places, (M,) by (M,)."""
        self._joining = rows, np.asarray(places)
        self._memory_lengths[places] = rows.lengths

    def store_memory(self, owner: Module, key: Array, value: Array) -> None:
        """Keep a cross-attention's keys and values of the memory, (M, H, K)."""
        rows, places = self._joining
        memory = self._memories.get(owner)
        if memory is None or memory.shape[3] < rows.longest:
            room = max(rows.longest, _FIRST_MEMORY if memory is None else 2 * memory.shape[3])
            shape = len(self.held), 2, key.shape[1], room, key.shape[2]
            self.version += memory is not None
            memory = np.zeros(shape, key.dtype) if memory is None else _grown(memory, shape)
            self._memories[owner] = memory
        memory[places] = 0
        for part, new in enumerate((key, value)):
            memory[places[rows.sequence_of], part, :, rows.positions] = new


def _grown(array: Array, shape: tuple[int, ...]) -> Array:
    """Copy an array into a larger one of zeros, of which those that nobody writes to take no memory."""
    larger = np.zeros(shape, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


class PlacesCache(Cache):
    """Some places of a `SlotCache`, as the cache of as many sequences."""

    def __init__(self, slots: SlotCache, places: Sequence[int]):
        super().__init__(len(places))
        self._slots, self._places = slots, np.array(places)
        self.lengths[:] = slots.held[self._places]

    def extend(self, owner: Module, new: Array, rows: Rows) -> Array:
        """As that of a `Cache`; what is returned may be a copy."""
        self._slots.make_room(rows.longest)
        stored, places = self._slots.stored(owner, new), self._places
        if len(places) == 1:  # a view is faster
            own = stored[places[0] : places[0] + 1]
            own[0, rows.past[0] : rows.longest] = new
            return own
        stored[places[rows.sequence_of], rows.positions] = new
        return stored[places, : rows.longest]

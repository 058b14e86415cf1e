"""The KV cache, and the attention of a decoding step over it.

Keys and values of all tokens so far are kept, so that a decoding step computes one row for each sequence.

The beams of a text share its entries, and a mask says which of them each beam has read: its own tokens and those of the
beams that it descends from. So nothing is copied where a beam search goes on with other beams, only the mask changes,
and the beams of a text are multiplied with its entries together.
"""

import math
from collections.abc import Callable
from functools import cached_property, lru_cache, partial

import numpy as np

from toolkit.functional.arrays import Array, Empty
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows

_FIRST_CAPACITY = 32

# While the sums of exponentials stay within these bounds, none has overflowed and no row has vanished.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-30, 1e30
# Layers whose sums lie together, so that one call looks at all of them.
_LAYERS_TOGETHER = 16

KeysAndValues = tuple[Array, Array]
Attend = Callable[[int, Array | None], None]


class Cache:
    """Keys and values of N sequences that belong to texts, N / B consecutive ones to each of B texts.

    They are stored as (B, entries, D) for every attention module. `lengths`: the tokens of each sequence.
    memory: the rows of the encoder's output, one sequence of them for each text. capacity: entries of each text that
    there is room for at first; the unused ones take no memory. empty: lends memory.

    Two ways to read go together. The ordinary `forward` reads any number of tokens of every sequence: `rows`, `extend`,
    `advance`. A decoding step reads one of each: `begin_step`, `room`, `end_step`.
    """

    def __init__(
        self, sequences: int, memory: Rows | None = None, capacity: int = _FIRST_CAPACITY, empty: Empty = np.empty
    ):
        self.lengths = np.zeros(sequences, np.int64)
        self.version = 0  # another one whenever stored arrays are replaced, or texts change places
        self._beams = 1
        self._capacity, self._empty = capacity, empty
        self._entries = 0  # the number in use of every text
        self._room = 0  # the number that all layers have room for
        self._layers: dict[Module, KeysAndValues] = {}
        # (B, N / B, capacity): 1 where a sequence has read an entry, otherwise 0. None: entry t of every text is the
        # token t of its only sequence. With several beams too: then every sequence has entries of its own.
        self._read: Array | None = None
        self._memories: dict[Module, KeysAndValues] = {}
        self._memory_rows = memory
        self._memory_lengths = None if memory is None else memory.lengths

    @property
    def texts(self) -> int:
        """B, the number of texts that the sequences belong to."""
        return len(self.lengths) // self._beams

    def rows(self, lengths: Array) -> Rows:
        """Make the rows of the next tokens, `lengths` of them for each sequence."""
        self._separate()
        memories = 0 if self._memory_lengths is None else len(self._memory_lengths)
        memory_of = np.repeat(np.arange(memories), len(lengths) // memories) if memories else None
        return Rows(lengths, past=self.lengths.copy(), memory=self._memory_rows, memory_of=memory_of, cache=self)

    def extend(self, owner: Module, key: Array, value: Array, rows: Rows) -> KeysAndValues:
        """Store the new rows (N, D) and return all keys and values, (sequences, time, D).

        Beyond a sequence's length they are zero or stale, and finite."""
        layer = self._room_for(owner, rows.longest, key, np.zeros)
        begin, sequences, length = rows.past[:1], len(rows.lengths), int(rows.lengths[0])
        uniform = (rows.lengths == length).all() and (rows.past == begin).all()
        for stored, new in zip(layer, (key, value), strict=True):
            if uniform:
                stored[:, int(begin[0]) : int(begin[0]) + length] = new.reshape(sequences, length, new.shape[1])
            else:
                stored[:, self._entries : rows.longest] = 0  # what a step has made room for may be anything
                stored[rows.sequence_of, rows.positions] = new
        return layer

    def advance(self, lengths: Array) -> None:
        """Count the tokens of a forward pass that has ended as past."""
        self.lengths += lengths
        self._entries = int(self.lengths.max(initial=0))

    def forget(self, sequences: Array) -> None:
        """Empty some sequences, (N,) of bool."""
        self.keep(np.where(sequences, 0, self.lengths))

    def keep(self, lengths: Array) -> None:
        """Make every sequence forget all but its first `lengths` tokens.  Shapes: (N,)."""
        self._separate()
        np.minimum(self.lengths, lengths, out=self.lengths)
        self._entries = int(self.lengths.max(initial=0))

    def begin_step(self, dtype: type) -> tuple[slice, Array | None]:
        """Return the places of the new tokens of every text, and a mask of the entries that each sequence reads, the
        new ones included, (B, N / B, entries) of 0 and 1 (None: all are read)."""
        if self._read is None and self._beams == 1 and (self.lengths == self._entries).all():
            return self._next_entries(), None
        self._share(dtype)
        new = self._next_entries()
        if self._read.shape[2] < new.stop:
            grown = np.zeros((*self._read.shape[:2], 2 * new.stop), dtype)
            grown[:, :, : self._entries] = self._read[:, :, : self._entries]
            self._read = grown
        self._read[:, :, new] = _eye(self._beams)  # each beam reads its own
        return new, self._read[:, :, : new.stop]

    def _next_entries(self) -> slice:
        """Place the new tokens of a step, and make sure that all layers have room for them."""
        new = slice(self._entries, self._entries + self._beams)
        if new.stop > self._room:
            for owner, (keys, _) in list(self._layers.items()):
                self._room_for(owner, new.stop, keys, self._empty)
            self._room = min((keys.shape[1] for keys, _ in self._layers.values()), default=0)
        return new

    def room(self, owner: Module, like: Array) -> KeysAndValues:
        """Return the keys and values of a module, (B, entries, D), with room for those of a step that has begun.

        They stay the same arrays in later steps for as long as `version` does.
        """
        return self._room_for(owner, self._entries + self._beams, like, self._empty)

    def end_step(self) -> None:
        """Count the tokens of the step as past."""
        self._entries += self._beams
        self.lengths += 1

    def _room_for(self, owner: Module, entries: int, like: Array, empty: Empty) -> KeysAndValues:
        """Return the stored arrays of a module, made or doubled so that this many entries fit.

        Where texts are of unequal length, `empty` must give zeros: what is not read is multiplied by 0, and 0 · NaN is
        NaN.
        """
        layer = self._layers.get(owner)
        if layer is None or layer[0].shape[1] < entries:
            texts = len(self.lengths) if self._read is None else len(self._read)
            shape = texts, max(self._capacity, 2 * self._entries, entries), like.shape[-1]
            grown = empty(shape, like.dtype), empty(shape, like.dtype)
            for new, old in zip(grown, layer or (), strict=False):
                new[:, : self._entries] = old[:, : self._entries]
            self.version += layer is not None
            self._layers[owner] = layer = grown
        return layer

    def _share(self, dtype: type = np.float32) -> None:
        if self._read is not None:
            return
        beams, entries = self._beams, self._entries
        texts = len(self.lengths) // beams
        own = (np.arange(entries) < self.lengths[:, None]).reshape(texts, beams, entries)
        self._read = np.zeros((texts, beams, max(self._capacity, beams * entries)), dtype)
        for beam in range(beams):
            self._read[:, beam, beam * entries : (beam + 1) * entries] = own[:, beam]
        if beams > 1:
            self._entries, self._room, self.version = beams * entries, 0, self.version + 1
            for owner, layer in self._layers.items():
                self._layers[owner] = tuple(x[:, :entries].reshape(texts, self._entries, x.shape[2]) for x in layer)

    def _separate(self) -> None:
        """Give every sequence entries of its own, its tokens in order."""
        if self._read is None:
            return
        read = self._read[:, :, : self._entries].reshape(len(self.lengths), -1)
        self._entries, self._room, self.version = int(self.lengths.max(initial=0)), 0, self.version + 1
        order = np.argsort(read == 0, axis=1, kind="stable")[:, : self._entries]
        text_of = np.repeat(np.arange(len(self._read)), self._beams)[:, None]
        for owner, layer in self._layers.items():
            self._layers[owner] = tuple(stored[text_of, order] for stored in layer)
        self._read = None

    def select(self, texts: Array, sequences: Array) -> None:
        """Put the old text texts[i] in place i, and a copy of the old sequence sequences[j], of that text, in place j.

        There may be fewer of both afterwards. Of sequences there may be more: the texts then have several each.
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
        self.version += moved
        _select(self._layers, texts, self._entries)
        if self._memory_lengths is not None:
            self._memory_lengths = self._memory_lengths[texts]
            self.__dict__.pop("_visible", None)
            _select(self._memories, texts, self._memory_rows.longest)

    def has_memory(self, owner: Module) -> bool:
        return owner in self._memories

    def store_memory(self, owner: Module, key: Array, value: Array) -> None:
        """Keep a cross-attention's keys and values of the memory, (M, H, K), as (B, longest, H, K).

        The numbers of one head lie together: they are read as a whole, step after step.
        """
        rows = self._memory_rows
        shape = len(rows.lengths), key.shape[1], rows.longest, key.shape[2]
        padded = tuple(np.zeros(shape, part.dtype).swapaxes(1, 2) for part in (key, value))
        for by_key, part in zip(padded, (key, value), strict=True):
            by_key[rows.sequence_of, rows.positions] = part
        self._memories[owner] = padded

    def memory(self, owner: Module) -> tuple[Array, Array, Array | None]:
        """Return keys and values of the memory, (B, S, H, K), and a mask (B, S) of the real ones (None: all are)."""
        longest, real = self._visible
        key, value = self._memories[owner]
        return key[:, :longest], value[:, :longest], real

    @cached_property
    def _visible(self) -> tuple[int, Array | None]:
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


_eye = lru_cache(maxsize=64)(partial(np.eye, dtype=np.float32))


class CachedAttention:
    """Attention of B texts with W queries each, all queries of a text over the same entries of a cache.

    Exponentials are taken as they are, without subtracting the largest score, unless it is `careful`; the sums that
    they are divided by show at the end of a step if that was right (`is_safe`), and where it was not, the step is done
    again.  sizes: B, W, H and K. empty: lends memory, which all layers use in turn.
    """

    def __init__(self, sizes: tuple[int, int, int, int], dtype: type, empty: Empty = np.empty, careful: bool = False):
        texts, width, heads, head_dim = sizes
        self.careful, self._dtype, self._empty = careful, dtype, empty
        self._sizes = sizes
        self._scaled = np.empty(texts * width * heads * head_dim, dtype)
        self._averages = np.empty_like(self._scaled)
        self._layers, self._totals = 0, []  # the sums of `_LAYERS_TOGETHER` layers in one array
        self._scale = np.array(1 / math.sqrt(head_dim), dtype)
        self._scores = self._ones = np.empty(0, dtype)

    def totals(self) -> Array:
        """Make room for the sums of one more layer, (B·H·W,)."""
        number, texts, width, heads = self._layers % _LAYERS_TOGETHER, *self._sizes[:3]
        if number == 0:
            self._totals.append(np.ones((_LAYERS_TOGETHER, texts * heads * width), self._dtype))
        self._layers += 1
        return self._totals[-1][number]

    def prepared(self, query: Array, keys: Array, values: Array, out: Array, totals: Array) -> Attend:
        """Prepare a function of the number of keys, S, and of those that are read, which writes to `out` for every
        query the average of the values that it reads, weighted by the match of their keys with it.

        Shapes: query and out (B·W, H·K); keys and values (B, capacity, G, K), of which the first S are looked at; read
        (B, W or 1, S), 1 where read and 0 elsewhere (None: all).  totals: of this layer.
        """
        texts, width, heads, head_dim = self._sizes
        capacity, groups = keys.shape[1:3]
        by_query = texts, groups, width, heads // groups
        stack = texts, groups, width * heads // groups
        inputs, outputs = (x.reshape(texts, width, groups, -1, head_dim).swapaxes(1, 2) for x in (query, out))
        scaled, averages = (x.reshape(*by_query, head_dim) for x in (self._scaled, self._averages))
        queries, contexts = (x.reshape(*stack, head_dim) for x in (self._scaled, self._averages))
        by_key, by_value = keys.transpose(0, 2, 3, 1), values.swapaxes(1, 2)
        size = texts * width * heads * capacity
        if len(self._scores) < size:
            self._scores, self._ones = self._empty((size,), self._dtype), np.ones(capacity, self._dtype)
        all_scores, ones = self._scores, self._ones
        split_totals = totals.reshape(*by_query, 1)

        def attend(count: int, read: Array | None) -> None:
            np.multiply(inputs, self._scale, scaled)
            flat = all_scores[: texts * groups * stack[2] * count].reshape(-1, count)
            scores = flat.reshape(*stack, count)
            np.matmul(queries, by_key[..., :count], scores)
            if self.careful:
                grouped = scores.reshape(*by_query, count)
                if read is not None:
                    np.copyto(grouped, -np.inf, where=read[:, None, :, None] == 0)
                grouped -= grouped.max(axis=-1, keepdims=True)
            np.exp(flat, flat)
            if read is not None:
                weights = scores.reshape(*by_query, count)
                np.multiply(weights, read[:, None, :, None], weights)
            np.matmul(flat, ones[:count], totals)
            np.matmul(scores, by_value[:, :, :count], contexts)
            np.divide(averages, split_totals, outputs)

        return attend

    @property
    def is_safe(self) -> bool:
        """True if no sum of the last step has overflowed or vanished."""
        for totals in self._totals:
            least, largest = np.minimum.reduce(totals, axis=None), np.maximum.reduce(totals, axis=None)
            if not (least > _LEAST_TOTAL and largest < _LARGEST_TOTAL):
                return False
        return True

"""The KV cache, and the attention of a decoding step over it.

Keys and values of all tokens so far are kept, so that a decoding step computes one row for each sequence.

The beams of a text share its entries, and a mask says which of them each beam has read: its own tokens and those of the
beams that it descends from. So nothing is copied where a beam search goes on with other beams, only the mask changes,
and the beams of a text are multiplied with its entries together.
"""

import math
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache, partial

import numpy as np

from toolkit.functional.arrays import Array, Empty
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows

_FIRST_CAPACITY = 32
_MEMORY_STEP = 32  # there is room for a memory of a multiple of this length: the next texts may be longer

# While the sums of exponentials stay within these bounds, none has overflowed and no row has vanished.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-30, 1e30
# Layers whose sums lie together, so that one call looks at all of them.
_LAYERS_TOGETHER = 16

_ALL = slice(None)

Attend = Callable[..., None]


class Cache:
    """Keys and values of N sequences that belong to texts, N / B consecutive ones to each of B texts.

    They are stored side by side, as (B, entries, 2·D), for every attention module. `lengths`: the tokens of each.
    memory: the rows of the encoder's output, one sequence of them for each text. capacity: entries of each text that
    there is room for at first; the unused ones take no memory. empty: lends memory.

    Two ways to read go together. The ordinary `forward` reads any number of tokens of every sequence: `rows`, `extend`,
    `advance`. A decoding step reads one of each: `begin_step`, `room`, `end_step`.
    """

    comes_again = False  # a number of texts that there has been, with the same version

    def __init__(
        self, sequences: int, memory: Rows | None = None, capacity: int = _FIRST_CAPACITY, empty: Empty = np.empty
    ):
        self.lengths = np.zeros(sequences, np.int64)
        self._look_at_lengths()
        self.version = 0  # another one whenever stored arrays are replaced, or texts change places
        self._beams = 1
        self._capacity, self._empty = capacity, empty
        self._entries = 0  # the number in use of every text
        self._room = 0  # the number that all layers have room for
        self._layers: dict[Module, Array] = {}
        # (B, N / B, capacity): 1 where a sequence has read an entry, otherwise 0. None: entry t of every text is the
        # token t of its only sequence. With several beams too: then every sequence has entries of its own.
        self._read: Array | None = None
        self._memories: dict[Module, Array] = {}  # (B, 2, H, longest, K): what one head reads lies together
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

    def extend(self, owner: Module, new: Array, rows: Rows) -> Array:
        """Store the new keys and values (N, 2·D) and return all, (sequences, time, 2·D).

        Beyond a sequence's length they are zero or stale, and finite."""
        stored = self._room_for(owner, rows.longest, new, np.zeros)
        begin, sequences, length = int(rows.past[0]), len(rows.lengths), int(rows.lengths[0])
        if (rows.lengths == length).all() and (rows.past == begin).all():
            stored[:, begin : begin + length] = new.reshape(sequences, length, new.shape[1])
        else:
            stored[:, self._entries : rows.longest] = 0  # what a step has made room for may be anything
            stored[rows.sequence_of, rows.positions] = new
        return stored

    def begin_again(self, memory: Rows, capacity: int) -> bool:
        """Forget all but the arrays, for other texts with this memory; returns False if those do not fit."""
        longest = min((stored.shape[3] for stored in self._memories.values()), default=0)
        if len(memory.lengths) != self.texts or memory.longest > longest or capacity > self._capacity:
            return False
        self.lengths, self._beams, self._entries, self._read = np.zeros(self.texts, np.int64), 1, 0, None
        self._memory_rows, self._memory_lengths = memory, memory.lengths
        self.__dict__.pop("visible", None)
        self._look_at_lengths()
        return True

    def advance(self, lengths: Array) -> None:
        """Count the tokens of a forward pass that has ended as past."""
        self.lengths += lengths
        self._look_at_lengths()
        self._entries = self.longest

    def layers(self) -> Iterable[tuple[Module, Array]]:
        """Yield every module with its stored keys and values, (B, entries, 2·D)."""
        return self._layers.items()

    def _look_at_lengths(self) -> None:
        self.longest = int(self.lengths.max(initial=0))
        self.all_equal = bool((self.lengths == self.longest).all())

    def forget(self, sequences: Array) -> None:
        """Empty some sequences, (N,) of bool."""
        self.keep(np.where(sequences, 0, self.lengths))

    def keep(self, lengths: Array) -> None:
        """Make every sequence forget all but its first `lengths` tokens.  Shapes: (N,)."""
        self._separate()
        np.minimum(self.lengths, lengths, out=self.lengths)
        self._look_at_lengths()
        self._entries = self.longest

    @property
    def parts(self) -> list[slice]:
        """The texts that attend together."""
        return [slice(0, self.texts)]

    def begin_step(self, dtype: type) -> tuple[tuple[slice, slice], list[tuple[int, Array | None]]]:
        """Return the index of the new tokens in the stored arrays, and for each part of the texts the number of entries
        in use, the new ones included, and a mask of those that each sequence reads, (B, N / B, entries) of 0 and 1
        (None: all are read)."""
        if self._read is None and self._beams == 1 and self.all_equal and self.longest == self._entries:
            new = self._next_entries()
            return (_ALL, new), [(new.stop, None)]
        self._share(dtype)
        new = self._next_entries()
        if self._read.shape[2] < new.stop:
            grown = np.zeros((*self._read.shape[:2], 2 * new.stop), dtype)
            grown[:, :, : self._entries] = self._read[:, :, : self._entries]
            self._read = grown
        self._read[:, :, new] = _eye(self._beams)  # each beam reads its own
        return (_ALL, new), [(new.stop, self._read[:, :, : new.stop])]

    def _next_entries(self) -> slice:
        """Place the new tokens of a step, and make sure that all layers have room for them."""
        new = slice(self._entries, self._entries + self._beams)
        if new.stop > self._room:
            for owner, stored in list(self._layers.items()):
                self._room_for(owner, new.stop, stored, self._empty)
            self._room = min((stored.shape[1] for stored in self._layers.values()), default=0)
        return new

    def room(self, owner: Module, like: Array) -> Array:
        """Return the keys and values of a module, (B, entries, 2·D), with room for those of a step that has begun.

        They stay the same array in later steps for as long as `version` does.
        """
        return self._room_for(owner, self._entries + self._beams, like, self._empty)

    def end_step(self) -> None:
        """Count the tokens of the step as past."""
        self._entries += self._beams
        self.longest += 1
        self.lengths += 1

    def _room_for(self, owner: Module, entries: int, like: Array, empty: Empty) -> Array:
        """Return the stored array of a module, made or doubled so that this many entries fit.

        Where texts are of unequal length, `empty` must give zeros: what is not read is multiplied by 0, and 0 · NaN is
        NaN.
        """
        stored = self._layers.get(owner)
        if stored is None or stored.shape[1] < entries:
            texts = len(self.lengths) if self._read is None else len(self._read)
            grown = empty((texts, max(self._capacity, 2 * self._entries, entries), like.shape[-1]), like.dtype)
            if stored is not None:
                grown[:, : self._entries] = stored[:, : self._entries]
                self.version += 1
            self._layers[owner] = stored = grown
        return stored

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
            for owner, stored in self._layers.items():
                self._layers[owner] = stored[:, :entries].reshape(texts, self._entries, stored.shape[2])

    def _separate(self) -> None:
        """Give every sequence entries of its own, its tokens in order."""
        if self._read is None:
            return
        read = self._read[:, :, : self._entries].reshape(len(self.lengths), -1)
        self._entries, self._room, self.version = self.longest, 0, self.version + 1
        order = np.argsort(read == 0, axis=1, kind="stable")[:, : self._entries]
        text_of = np.repeat(np.arange(len(self._read)), self._beams)[:, None]
        for owner, stored in self._layers.items():
            self._layers[owner] = stored[text_of, order]
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
        if not self.all_equal or not len(sequences):
            self._look_at_lengths()
        if self._read is not None:
            self._read = self._read[texts[:, None], parents]
        if stay and not moved:
            return
        self.version += moved
        _select(self._layers, texts, self._entries)
        if self._memory_lengths is not None:
            self._memory_lengths = self._memory_lengths[texts]
            self.__dict__.pop("visible", None)
            _select(self._memories, texts)

    def has_memory(self, owner: Module) -> bool:
        return owner in self._memories

    def store_memory(self, owner: Module, key: Array, value: Array) -> None:
        """Keep a cross-attention's keys and values of the memory, (M, H, K)."""
        rows = self._memory_rows
        if owner not in self._memories:
            room = rows.longest + -rows.longest % _MEMORY_STEP
            self._memories[owner] = self._empty((len(rows.lengths), 2, key.shape[1], room, key.shape[2]), key.dtype)
        if self.visible[1] is not None:
            self._memories[owner][:, :, :, : rows.longest] = 0
        for by_head, part in zip(self._memories[owner].swapaxes(0, 1), (key, value), strict=True):
            by_head.swapaxes(1, 2)[rows.sequence_of, rows.positions] = part

    def memory(self, owner: Module) -> Array:
        """Return the keys and values of the memory, (2, B, capacity, H, K), of which only some are `visible` now."""
        return self._memories[owner].transpose(1, 0, 3, 2, 4)

    @cached_property
    def visible(self) -> tuple[int, Array | None]:
        """Count the keys S of the longest text, and mask the real ones, (B, S) (None: all are); others are zeros."""
        longest = int(self._memory_lengths.max(initial=0))
        real = np.arange(longest) < self._memory_lengths[:, None]
        return longest, None if real.all() else real


def _select(layers: dict[Module, Array], origins: Array, entries: int | None = None) -> None:
    """Rearrange stored arrays (texts, entries, …) in place; only those that change are copied."""
    count = len(origins)
    changed = np.flatnonzero(origins != np.arange(count))
    moved = origins[changed]
    for owner, stored in layers.items():
        if count > len(stored):
            layers[owner] = stored[origins]
            continue
        if len(changed):
            stored[changed, :entries] = stored[moved, :entries]
        layers[owner] = stored[:count]


_eye = lru_cache(maxsize=64)(partial(np.eye, dtype=np.float32))


class CachedAttention:
    """Attention of B texts with W queries each, all queries of a text over the same entries of a cache.

    Queries have been divided by √K. Exponentials are taken as they are, without subtracting the largest score, unless
    it is `careful`; the sums that they are divided by show at the end of a step if that was right (`is_safe`), and
    where it was not, the step is done again.
    sizes: B, W, H and K. empty: lends memory, which all layers use in turn.
    """

    def __init__(self, sizes: tuple[int, int, int, int], dtype: type, empty: Empty = np.empty, careful: bool = False):
        self.careful, self._dtype, self._empty = careful, dtype, empty
        self._sizes = sizes
        self._gathered, self._contexts = np.empty((2, math.prod(sizes)), dtype)
        self._layers, self._totals = 0, []  # the sums of `_LAYERS_TOGETHER` layers in one array
        self._scores = self._ones = np.empty(0, dtype)
        self._views: dict[tuple[int, int], tuple[Array, ...]] = {}

    def prepared(self, query: Array, keys: Array, values: Array, out: Array) -> Attend:
        """Prepare a function of the number of keys, S, and of those that are read, which writes to `out` for every
        query the average of the values that it reads, weighted by the match of their keys with it.

        Shapes: query and out (B·W, H·K); keys and values (B, capacity, G, K), of which the first S are looked at. Of
        the function: read, (B, W, S), 1 where read and 0 elsewhere (None: all), or real, (B, S), False where nobody
        reads and the values are zeros (None: nowhere).
        """
        texts, width, heads, head_dim = self._sizes
        capacity, groups = keys.shape[1:3]
        split = texts, groups, width, heads // groups
        stack = (*split[texts == 1 : 2], width * heads // groups)
        inputs, outputs = (x.reshape(texts, width, groups, -1, head_dim).swapaxes(1, 2) for x in (query, out))
        gather = None
        if width > 1 and heads > groups:  # the queries of a group are no matrix as they lie
            gathered = self._gathered.reshape(inputs.shape)
            gather, inputs = partial(np.copyto, gathered, inputs), gathered
        queries, contexts = inputs.reshape(*stack, head_dim), self._contexts.reshape(*stack, head_dim)
        only = 0 if texts == 1 else slice(None)  # fewer axes are faster
        by_key, by_value = keys.transpose(0, 2, 3, 1)[only], values.swapaxes(1, 2)[only]
        several, totals = [size for size in split if size > 1], self._new_totals()
        averages, outputs = (x.reshape(*several, head_dim) for x in (self._contexts, outputs))
        divisors = totals.reshape(*several, 1)
        if len(self._scores) < texts * width * heads * capacity:
            self._scores = self._empty((texts * width * heads * capacity,), self._dtype)
            self._ones, self._views = np.ones(capacity, self._dtype), {}

        def attend(count: int, read: Array | None = None, real: Array | None = None) -> None:
            flat, scores, weights, by_text, ones = self._views.get((count, groups)) or self._view(count, split, stack)
            if gather is not None:
                gather()
            np.matmul(queries, by_key[..., :count], scores)
            if self.careful:
                if (seen := read if real is None else real[:, None]) is not None:
                    np.copyto(weights, -np.inf, where=seen[:, None, :, None] == 0)
                weights -= weights.max(axis=-1, keepdims=True)
            np.exp(flat, flat)
            if read is not None:
                np.multiply(weights, read[:, None, :, None], weights)
            if real is None:
                flat.dot(ones, totals)
            else:
                np.matmul(by_text, real.astype(self._dtype)[:, :, None], totals.reshape(texts, -1, 1))
            np.matmul(scores, by_value[..., :count, :], contexts)
            np.divide(averages, divisors, outputs)

        return attend

    def _new_totals(self) -> Array:
        """Make room for the sums of one more layer, (B·H·W,)."""
        if self._layers % _LAYERS_TOGETHER == 0:
            self._totals.append(np.ones((_LAYERS_TOGETHER, math.prod(self._sizes[:3])), self._dtype))
        self._layers += 1
        return self._totals[-1][(self._layers - 1) % _LAYERS_TOGETHER]

    def _view(self, count: int, split: tuple[int, ...], stack: tuple[int, ...]) -> tuple[Array, ...]:
        """View the memory of scores as those of so many keys, by query, by matrix, by head, and by text."""
        flat = self._scores[: math.prod(split) * count].reshape(-1, count)
        views = flat, *(flat.reshape(*shape, count) for shape in (stack, split, (split[0], -1))), self._ones[:count]
        self._views = {**(self._views if len(self._views) < 8 else {}), (count, split[1]): views}  # those of late
        return views

    @property
    def is_safe(self) -> bool:
        """True if no sum of the last step has overflowed or vanished."""
        for totals in self._totals:  # argmax is several times as fast as max, and NaN is the largest of all
            number = totals.item
            if not (number(totals.argmin()) > _LEAST_TOTAL and number(totals.argmax()) < _LARGEST_TOTAL):
                return False
        return True

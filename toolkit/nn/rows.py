"""Rows, not padded batches: which rows of an (N, D) array belong to which sequence.

Everything that treats tokens one by one works on (N, D) arrays that hold real tokens only. Attention alone needs to
know where sequences begin, and asks `Rows`: it gets `Span`s, stacks of sequences of one length that it can view as
(B, T, H, K) without copying.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from toolkit.display import counted
from toolkit.functional.arrays import Array

# A span's scores are computed, normalised and used up before the next span's: this many of them per head stay in the
# second-level cache.
_SPAN_SCORES = 1 << 14

# Padding that is worth one more span: handling a span costs about as much as handling this many padded keys.
_PADDING_WORTH_A_SPAN = 64


class Span(NamedTuple):
    """B consecutive sequences of T rows each."""

    rows: slice  # B·T rows
    sequences: slice  # B sequences
    count: int  # B
    length: int  # T


class CrossSpan(NamedTuple):
    """A span together with the memory rows that it attends to."""

    span: Span
    keys: Array  # (B, S) rows of the memory; shorter memories repeat their last row
    real: Array | None  # (B, S) False where `keys` is padding; None where nothing is


class CachedSpan(NamedTuple):
    """A span together with what its rows see of the cache."""

    span: Span
    keys: int  # the first so many of every sequence
    visible: Array | None  # (B, 1, keys, T) which of them each row sees; None where each sees all


class Rows:
    """The sequences of a batch, one after the other.

    lengths: how many rows each of the B sequences has here. past: how many tokens of each are in `cache` already.
    memory: the rows of the encoder's output, and memory_of: which of its sequences each of ours attends to; sequences
    that share one (the beams of a sentence) stand next to each other.
    """

    def __init__(
        self,
        lengths: Array,
        past: Array | None = None,
        memory: "Rows | None" = None,
        memory_of: Array | None = None,
        cache: Any = None,
    ):
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.past = past
        self.memory, self.memory_of = memory, memory_of
        self.cache = cache
        self.starts = np.cumsum(self.lengths) - self.lengths

    def __repr__(self) -> str:
        return f"<Rows: {counted(self.total, 'row')} of {counted(len(self.lengths), 'sequence')}>"

    @property
    def total(self) -> int:
        """N, the number of rows."""
        return int(self.lengths.sum())

    @cached_property
    def sequence_of(self) -> Array:
        """(N,) the sequence that each row belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def positions(self) -> Array:
        """(N,) the position of each row in its sequence, the past included."""
        begin = self.starts if self.past is None else self.starts - self.past
        return np.arange(self.total) - np.repeat(begin, self.lengths)

    @cached_property
    def longest(self) -> int:
        """Tokens of the longest sequence, the past included."""
        ends = self.lengths if self.past is None else self.lengths + self.past
        return int(ends.max(initial=0))

    @cached_property
    def spans(self) -> list[Span]:
        """Sequences of equal length together, as many as the cache holds scores for."""
        most = [max(1, _SPAN_SCORES // max(int(length) ** 2, 1)) for length in self.lengths]
        return list(self._runs(self.lengths, most))

    @cached_property
    def cached_spans(self) -> list[CachedSpan]:
        """The spans of sequences that have a past, for all attention modules of a pass."""
        found = []
        for span in self.spans:
            past = self.past[span.sequences]
            keys = int(past.max()) + span.length
            unequal = span.length > 1 or past.min() != past.max()
            found.append(CachedSpan(span, keys, causal_mask_with_past(past, span.length, keys) if unequal else None))
        return found

    def _runs(self, lengths: Array, most: list[int]):
        """Cut consecutive pieces of these lengths into runs of equal length, at most `most` pieces each."""
        row = first = 0
        while first < len(lengths):
            length, last = int(lengths[first]), first + 1
            while last < len(lengths) and lengths[last] == length and last - first < most[first]:
                last += 1
            count = last - first
            yield Span(slice(row, row + count * length), slice(first, last), count, length)
            row, first = row + count * length, last

    @cached_property
    def memory_pieces(self) -> tuple[Array, Array]:
        """Rows by the memory that they attend to: which memory, and how many consecutive rows."""
        begins = np.flatnonzero(np.concatenate(([True], self.memory_of[1:] != self.memory_of[:-1])))
        owners = self.memory_of[begins]
        if len(np.unique(owners)) != len(owners):
            raise ValueError("sequences that share a memory must stand next to each other")
        return owners, np.add.reduceat(self.lengths, begins)

    @cached_property
    def memory_spans(self) -> list[Span]:
        """Pieces with equally many rows together; `sequences` counts pieces."""
        lengths = self.memory_pieces[1]
        return list(self._runs(lengths, [len(lengths)] * len(lengths)))

    @cached_property
    def cross_spans(self) -> list[CrossSpan]:
        """Pieces with equally many rows together, with the keys of each; cut where padding would cost too much."""
        owners, lengths = self.memory_pieces
        key_lengths = self.memory.lengths[owners]
        spans, first, row = [], 0, 0
        while first < len(owners):
            length, last, longest, used = int(lengths[first]), first, 0, 0
            while last < len(owners) and lengths[last] == length:
                longest_now, used_now = max(longest, int(key_lengths[last])), used + int(key_lengths[last])
                padded = (last + 1 - first) * longest_now
                too_long = padded * length > _SPAN_SCORES
                if last > first and (too_long or padded - used_now > _PADDING_WORTH_A_SPAN):
                    break
                longest, used, last = longest_now, used_now, last + 1
            count = last - first
            span = Span(slice(row, row + count * length), slice(first, last), count, length)
            spans.append(self._with_keys(span, owners[first:last], key_lengths[first:last]))
            row, first = row + count * length, last
        return spans

    def _with_keys(self, span: Span, owners: Array, key_lengths: Array) -> CrossSpan:
        steps = np.arange(key_lengths.max())
        within = np.minimum(steps, key_lengths[:, None] - 1)
        real = steps < key_lengths[:, None]
        return CrossSpan(span, self.memory.starts[owners][:, None] + within, None if real.all() else real)


def causal_mask_with_past(past: Array, length: int, keys: int) -> Array:
    """(B, 1, S, T): query t of sequence b stands at position past_b + t and sees keys up to it."""
    positions = past[:, None] + np.arange(length)
    return (np.arange(keys)[:, None] <= positions[:, None, :])[:, None]

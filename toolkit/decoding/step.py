"""A decoding step, one more token of every sequence: the ordinary forward over the cache, recorded and replayed.

A step has few rows, so calls cost as much as arithmetic. A recording (`toolkit.decoding.recording`) leaves nothing of
the forward but its array operations; here are, for each kind of leaf, those that are fastest for few rows. They give
the module's own numbers, to rounding, which tests/decoding/test_step.py verifies. The structure of layers and models,
norms, residual connections and gates stands in `toolkit.nn` and `toolkit.models` alone.
"""

import math
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from toolkit.decoding.cache import Cache, CachedAttention
from toolkit.decoding.recording import Recording, Traced, plain, with_one
from toolkit.decoding.slots import SlotCache
from toolkit.decoding.weights import PackedWeights
from toolkit.functional.activation import ACTIVATIONS
from toolkit.functional.arrays import Array
from toolkit.functional.embedding import look_up
from toolkit.functional.int8 import Int8Matrix
from toolkit.functional.linear import product_calls
from toolkit.models.base import InputEmbedding
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.layers import (
    ActivatedLinear,
    Centring,
    Dropout,
    Embedding,
    GatedLinear,
    HeadNorm,
    LayerNorm,
    LearnedPositions,
    Linear,
    Output,
    RMSNorm,
    RotaryPositions,
    SinusoidalPositions,
)
from toolkit.nn.memory import Pool
from toolkit.nn.module import Module, Parameter


class Step:
    """The decoder of a model, from the last tokens of all sequences in a cache to the scores of the next ones.

    The keys and values that a `CrossAttention` remembers of the memory must be in the cache already.
    """

    def __init__(self, model: Seq2Seq | GPT, cache: Cache | SlotCache, packed: PackedWeights, pool: Pool):
        self._cache, self._packed, self._pool = cache, packed, pool
        self._model = packed.recorder(model, _KINDS)
        self._input = model.trunk.input if isinstance(model, GPT) else model.target
        self._dtype = model.output.table.data.dtype.type
        self._rows = _StepRows(cache)
        # By texts, sequences and version of the cache: a recording, and the array that its scores come in.
        self._kept: dict[tuple[int, ...], tuple[_StepRecording, Array]] = {}
        self._careful = False

    def logits(self, ids: Array) -> Array:
        """Read one token of every sequence, and score all tokens as the next one.  Shapes: (N,) -> (N, V).

        The result is good until the next step, and the caller's to change.
        """
        self._rows.begin(self._input.rows_of(ids), self._dtype)
        arrangement = self._cache.texts, len(ids), self._cache.version
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if kept := self._kept.get(arrangement):
                kept[0].replay()
            else:  # the sequences are not those of an earlier step
                self._forget(arrangement[-1])
                self._kept[arrangement] = kept = self._record(len(ids))
            for attention in kept[0].attentions.values():
                if not attention.is_safe:
                    self._careful = attention.careful = True  # for the rest too: large scores will be so again
                    kept[0].replay()
        self._cache.end_step()
        return kept[1]

    def _forget(self, version: int) -> None:
        """Drop the recordings that will not be used again, so that their memory is lent anew."""
        for each in list(self._kept):
            if not self._cache.comes_again or each[-1] != version:
                del self._kept[each]

    def _record(self, count: int) -> tuple["_StepRecording", Array]:
        rows, model = self._rows, self._model
        tape = _StepRecording(self._pool, self._packed, count // self._cache.texts, self._careful)
        x = model.read(rows.ids, rows, tape) if isinstance(model, GPT) else model.decode(rows.ids, (), rows, tape)
        scores = plain(model.output.logits(x, tape))
        tape.waves.clear()  # which refer to the tape: with them it would outlive its use
        return tape, scores


class _StepRows:
    """The rows of a step, one token each."""

    ids: Array  # (N,), the same array whenever there are as many
    positions: Array  # (N,)
    longest: int
    place: int | Array  # the positions, or the one that all have
    new: tuple[slice | Array, slice | Array]  # the index of the new tokens in the entries of all texts
    # Of each part of the texts the number of entries that are looked at, and 1 for those that each sequence reads, (B,
    # W, entries).
    seen: list[tuple[int, Array | None]]

    def __init__(self, cache: Cache | SlotCache):
        self.cache, self.ids, self._ids = cache, np.empty(0, np.int64), {}

    def begin(self, ids: Array, dtype: type) -> None:
        self.new, self.seen = self.cache.begin_step(dtype)
        self.positions, self.longest = self.cache.lengths, self.cache.longest + 1
        self.place = self.longest - 1 if self.cache.all_equal else self.positions
        if len(self.ids) != len(ids):
            self.ids = self._ids.setdefault(len(ids), np.empty(len(ids), np.int64))
        self.ids[:] = ids


class _StepRecording(Recording):
    """A recording for a number of sequences.  beams: W, sequences of each text."""

    def __init__(self, pool: Pool, packed: PackedWeights, beams: int, careful: bool):
        super().__init__(pool)
        self.packed, self._beams, self._careful = packed, beams, careful
        self.attentions: dict[tuple[int, int, int], CachedAttention] = {}
        self.waves: dict[RotaryPositions, Array] = {}

    def attention(self, heads: int, width: int, like: Array) -> CachedAttention:
        kind = len(like) // self._beams, heads, width
        if kind not in self.attentions:
            sizes = kind[0], self._beams, heads, width
            self.attentions[kind] = CachedAttention(sizes, like.dtype.type, self.plain.empty, self._careful)
        return self.attentions[kind]


def _product(
    x: Array, parameter: Parameter, weight: Array | Int8Matrix, bias: Parameter | None, tape: _StepRecording
) -> Array:
    """x W + b.  weight: the data of the parameter, or that transposed."""
    dtype, rows = x.dtype.type, len(x)
    out = tape.empty((rows, weight.shape[1]), dtype)
    y = plain(out)
    if isinstance(weight, Int8Matrix):
        scratch = [tape.empty(*each) for each in weight.scratch(rows, dtype)]
        multiply = weight.prepared(y, bias and bias.data, *map(plain, scratch))
        if type(x) is Traced and x.pending is not None:
            source, eps, *_ = x.pending.args  # not divided yet
            undivided, length = plain(source), _length(plain(source), eps, tape)
            tape.note(lambda: multiply(undivided, 1 / length()))
        else:
            tape.note(partial(multiply, plain(x)))
        return out
    given = plain(x)
    if rows == 1 and parameter.joined is not None and (longer := with_one(x)) is not None:
        tape.note(partial(longer.dot, parameter.joined, y[0]))
        return out
    if tape.packed.kernel(rows) == "vecdot" and weight.strides[0] < weight.strides[1]:
        tape.note(partial(np.vecdot, weight.T[:, None], given, y.T))
    else:
        form = weight if rows == 1 else tape.packed.packed(parameter, weight)
        for call in product_calls(given, form, y):
            tape.note(call)
    if bias is not None:
        tape.note(partial(np.add, y, bias.data, y))
    return out


class _Linear(Linear):
    def forward(self, x: Array, tape: _StepRecording) -> Array:
        return _product(x, self.weight, self.weight.data, self.bias, tape)


class _ActivatedLinear(ActivatedLinear):
    def forward(self, x: Array, tape: _StepRecording) -> Array:
        y = _product(x, self.weight, self.weight.data, self.bias, tape)
        tape.call(ACTIVATIONS[self.activation], y)
        return y


class _GatedLinear(GatedLinear):
    def forward(self, x: Array, tape: _StepRecording) -> Array:
        hidden = _product(x, self.weight, self.weight.data, self.bias, tape)
        gate, up = np.split(plain(hidden), 2, axis=1)
        out = tape.empty(gate.shape, x.dtype.type)
        tape.call(ACTIVATIONS["silu"], gate)
        tape.call(np.multiply, gate, up, out)
        return out


class _Output(Output):
    def logits(self, x: Array, tape: _StepRecording) -> Array:
        return _product(x, self.table, self._values()[0].T, self.bias, tape)


class _Norm(Module):
    """Layer norm, or root mean square norm, with the division by D taken into gain and eps:

    y = c · (√D gain) / √(Σ c² + D eps) + bias        with c = x - mean(x), or x
    """

    original: LayerNorm | RMSNorm

    @cached_property
    def _scaled(self) -> tuple[Array, Array | None, Array | None, Array | None]:
        """D eps; √D gain where that is not 1, as in norms that have been folded; for layer norm 1 / D and the bias."""
        gain, centres = self.gain.data, isinstance(self.original, LayerNorm)
        width = len(gain)
        scaled = gain * math.sqrt(width)
        is_one = np.abs(scaled - 1).max() <= np.finfo(gain.dtype).eps
        average = np.full((width, 1), 1 / width, gain.dtype) if centres else None
        bias = self.bias.data if centres and self.bias else None
        return np.full(1, self.eps * width, gain.dtype), None if is_one else scaled, average, bias

    def forward(self, x: Array, tape: _StepRecording) -> Array:
        eps, gain, average, bias = self._scaled
        out = tape.empty(x.shape, x.dtype.type)
        y = plain(out)
        if average is not None:
            _note_centring(plain(x), average, y, tape)
            x = out
        division = partial(_divide, x, eps, y, tape)
        if gain is None and bias is None and average is None:
            out.pending = division  # which a product in int8 does with the scales of its sums
            return out
        division()
        if gain is not None:
            tape.note(partial(np.multiply, y, gain, y))
        if bias is not None:
            tape.note(partial(np.add, y, bias, y))
        return out


def _divide(x: Array, eps: Array, out: Array, tape: _StepRecording) -> None:
    """Note x / √(Σ x² + eps), row by row."""
    x, length = plain(x), _length(plain(x), eps, tape)
    tape.note(lambda: np.divide(x, length(), out))


def _length(x: Array, eps: Array, tape: _StepRecording) -> Callable[[], float | Array]:
    """Prepare √(Σ x² + eps) over the last axis, for one operation: of a single row a number, which is cheaper."""
    if x.ndim == 2 and len(x) == 1:
        row, number = x[0], eps.item()
        return lambda: math.sqrt(row.dot(row) + number)
    lengths = plain(tape.empty((*x.shape[:-1], 1), x.dtype.type))
    squares = lengths[..., 0]

    def length() -> Array:
        np.vecdot(x, x, squares)
        np.add(lengths, eps, lengths)
        return np.sqrt(lengths, lengths)

    return length


class _Centring(Centring):
    def forward(self, x: Array, tape: _StepRecording) -> Array:
        """As the original, in place: no one else reads what the embedding has made."""
        _note_centring(plain(x), np.full((x.shape[1], 1), 1 / x.shape[1], x.dtype), plain(x), tape)
        return x


def _note_centring(x: Array, average: Array, out: Array, tape: _StepRecording) -> None:
    """average: (D, 1) of 1 / D."""
    if len(x) == 1:
        row, average, centred = x[0], average[:, 0], out[0]
        tape.note(lambda: np.subtract(row, row.dot(average), centred))
    else:
        mean = plain(tape.empty((len(x), 1), x.dtype.type))
        tape.note(partial(np.matmul, x, average, mean))
        tape.note(partial(np.subtract, x, mean, out))


class _InputEmbedding(InputEmbedding):
    def rows_of(self, ids: Array) -> Array:
        return ids  # `_StepRows` has them already


class _Embedding(Embedding):
    def forward(self, ids: Array, tape: _StepRecording) -> Array:
        table = self.table.data
        out = tape.empty((len(ids), table.shape[1]), table.dtype.type)
        tape.call(look_up, ids, table, out)
        if self.scale != 1.0:
            tape.call(np.multiply, out, self.scale, out)
        return out


class _Positions(Module):
    """Positions that are added, in place: no one else reads what the embedding has made."""

    def forward(self, x: Array, rows: _StepRows, tape: _StepRecording) -> Array:
        y, table = plain(x), self.original.table
        tape.note(lambda: np.add(y, table(rows.longest, y.dtype)[rows.place], y))
        return x


class _RotaryPositions(RotaryPositions):
    def turn(self, x: Array, rows: _StepRows, tape: _StepRecording) -> None:
        """Turn by waves that are looked up once in a step, for all layers: y = x · [c | c] + [x₂ | x₁] · [-s | s]."""
        half, dtype = self.head_dim // 2, x.dtype.type
        if self.original not in tape.waves:
            tape.waves[self.original] = tape.empty((2, len(x), 1, 2, half), dtype)
            (cosine, sine), tables = plain(tape.waves[self.original]), self.original.tables

            def look_up() -> None:
                cosines, sines = tables(rows.longest, cosine.dtype)
                cosine[...] = cosines[rows.place][..., None, None, :]
                sine[:, :, 1] = sines[rows.place][..., None, :]
                np.negative(sine[:, :, 1], sine[:, :, 0])

            tape.note(look_up)
        cosine, sine = plain(tape.waves[self.original])
        halves = plain(x).reshape(*x.shape[:2], 2, half)
        crossed = plain(tape.empty(halves.shape, dtype))
        tape.note(partial(np.multiply, halves[:, :, ::-1], sine, crossed))
        tape.note(partial(np.multiply, halves, cosine, halves))
        tape.note(partial(np.add, halves, crossed, halves))


class _HeadNorm(HeadNorm):
    def normalize(self, x: Array, tape: _StepRecording) -> None:
        """As `_Norm`, in place."""
        gain, width = self.gain.data, len(self.gain.data)
        _divide(x, np.full(1, self.eps * width, gain.dtype), plain(x), tape)
        tape.call(np.multiply, x, gain * math.sqrt(width), x)


class _SelfAttention(SelfAttention):
    def _over_cache(self, projected: Array, context: Array, rows: _StepRows, tape: _StepRecording) -> None:
        query, new = np.split(plain(projected), self._bounds[:1], axis=1)
        new = new.reshape(rows.cache.texts, -1, new.shape[1])
        stored, query, attends = rows.cache.room(self.original, new), _scaled(self, query, tape), []
        for part in rows.cache.parts:
            own, beams = stored[part], slice(part.start * new.shape[1], part.stop * new.shape[1])
            by_head = np.moveaxis(own.reshape(*own.shape[:2], 2, -1, self.head_dim), 2, 0)
            attention = tape.attention(self.num_heads, self.head_dim, context[beams])
            attends.append(attention.prepared(query[beams], *by_head, plain(context)[beams]))

        first, *others = attends

        def over_the_cache() -> None:
            stored[rows.new] = new
            first(*rows.seen[0])
            for attend, seen in zip(others, rows.seen[1:], strict=True) if others else ():
                attend(*seen)

        tape.note(over_the_cache)


class _CrossAttention(CrossAttention):
    def _over_cache(self, query: Array, memory: Array, context: Array, rows: _StepRows, tape: _StepRecording) -> None:
        cache, attention = rows.cache, tape.attention(self.num_heads, self.head_dim, context)
        attend = attention.prepared(_scaled(self, query, tape), *cache.memory(self.original), plain(context))

        def over_the_memory() -> None:
            count, real = cache.visible
            attend(count, None, real)

        tape.note(over_the_memory)


def _scaled(attention: SelfAttention | CrossAttention, query: Array, tape: _StepRecording) -> Array:
    """Divide queries by √K, in place, where their weights have not been."""
    if not getattr(attention, "is_scaled", False):
        tape.call(np.multiply, query, plain(query).dtype.type(1 / math.sqrt(attention.head_dim)), query)
    return plain(query)


_KINDS: dict[type, type] = {
    Linear: _Linear,
    ActivatedLinear: _ActivatedLinear,
    GatedLinear: _GatedLinear,
    Output: _Output,
    LayerNorm: _Norm,
    RMSNorm: _Norm,
    HeadNorm: _HeadNorm,
    Dropout: Dropout,  # does nothing
    RotaryPositions: _RotaryPositions,
    SelfAttention: _SelfAttention,
    CrossAttention: _CrossAttention,
    InputEmbedding: _InputEmbedding,
    Embedding: _Embedding,
    SinusoidalPositions: _Positions,
    LearnedPositions: _Positions,
    Centring: _Centring,
}

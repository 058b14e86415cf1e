"""A decoding step, one more token of every sequence: the ordinary forward over the cache, recorded and replayed.

A step has few rows, so calls cost as much as arithmetic. A recording (`toolkit.decoding.recording`) leaves nothing of
the forward but its array operations; here are, for each kind of leaf, those that are fastest for few rows. They give
the module's own numbers, to rounding, which tests/decoding/test_step.py verifies. The structure of layers and models,
norms, residual connections and gates stands in `toolkit.nn` and `toolkit.models` alone.
"""

import math
from functools import cached_property, partial

import numpy as np

from toolkit.decoding.cache import Cache, CachedAttention
from toolkit.decoding.recording import OneCall, Recording, plain, recorder_of
from toolkit.functional.activation import ACTIVATIONS
from toolkit.functional.arrays import Array
from toolkit.functional.embedding import look_up
from toolkit.functional.int8 import Int8Matrix
from toolkit.functional.linear import Packed, pack, product_calls
from toolkit.functional.positions import rotary
from toolkit.models.base import InputEmbedding
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.layers import (
    ActivatedLinear,
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
)
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model, Module, Parameter, aligned_zeros

# This many bytes of weights are still in the last cache when the next step wants them (one core of a server).
_CACHE_BYTES = 12 << 20
# Up to this many rows are limited by the reading of weights where these come from memory.
_FEWEST_ROWS = 3

# One row reads a matrix from its beginning to its end as it lies: packing is for more.
_LEAST_PACKED_ROWS = 2
# All packed copies of a model together: those of a larger one would cost more than they are worth.
_MOST_PACKED_BYTES = 64 << 20
_ROOM = 8 << 20  # bytes, in which several of them are made; what none needs is never touched
# Parameters that are compared to see if a model has been trained since.
_SAMPLE = 4096


class Step:
    """The decoder of a model, from the last tokens of all sequences in a cache to the scores of the next ones.

    The keys and values that a `CrossAttention` remembers of the memory must be in the cache already.
    """

    def __init__(self, model: Seq2Seq | GPT, cache: Cache, packed: "PackedWeights", pool: Pool):
        self._cache, self._packed, self._pool = cache, packed, pool
        self._model, self._streams = packed.recorder(model)
        self._input = model.trunk.input if isinstance(model, GPT) else model.target
        self._dtype = model.output.table.data.dtype.type
        self._rows = _StepRows(cache)
        self._arrangement: tuple[int, ...] = ()
        self._recording: _StepRecording | None = None
        self._careful = False

    def logits(self, ids: Array) -> Array:
        """Read one token of every sequence, and score all tokens as the next one.  Shapes: (N,) -> (N, V).

        The result is good until the next step, and the caller's to change.
        """
        self._rows.begin(self._input.rows_of(ids), self._dtype)
        arrangement = self._cache.texts, len(ids), self._cache.version
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if arrangement == self._arrangement:
                self._recording.replay()
            else:  # the sequences are not those of the last step
                self._arrangement, self._recording, self._scores = (), None, None  # lend memory again
                self._recording = self._record(len(ids))
                self._arrangement = arrangement
            for attention in self._recording.attentions.values():
                if not attention.is_safe:
                    self._careful = attention.careful = True  # for the rest too: large scores will be so again
                    self._recording.replay()
        self._cache.end_step()
        return self._scores

    def _record(self, count: int) -> "_StepRecording":
        rows, model = self._rows, self._model
        tape = _StepRecording(self._pool, self._packed, self._streams, count // self._cache.texts, self._careful)
        x = model.read(rows.ids, rows, tape) if isinstance(model, GPT) else model.decode(rows.ids, (), rows, tape)
        self._scores = plain(model.output.logits(x, tape))
        tape.waves.clear()  # which refer to the tape: with them it would outlive its use
        return tape


class _StepRows:
    """The rows of a step, one token each."""

    ids: Array  # (N,), the same array as long as there are as many
    positions: Array  # (N,)
    longest: int
    new: slice  # the entries of the new tokens in the cache
    read: Array | None  # (B, W, entries) 1 for the entries that each sequence reads

    def __init__(self, cache: Cache):
        self.cache, self.ids = cache, np.empty(0, np.int64)

    def begin(self, ids: Array, dtype: type) -> None:
        self.new, self.read = self.cache.begin_step(dtype)
        self.positions = self.cache.lengths
        self.longest = int(self.positions.max()) + 1
        if len(self.ids) != len(ids):
            self.ids = np.empty(len(ids), np.int64)
        self.ids[:] = ids


class _StepRecording(Recording):
    """A recording for a number of sequences.  beams: W, sequences of each text."""

    def __init__(self, pool: Pool, packed: "PackedWeights", streams: bool, beams: int, careful: bool):
        super().__init__(pool)
        self.packed, self.streams, self._beams, self._careful = packed, streams, beams, careful
        self.attentions: dict[tuple[int, int], CachedAttention] = {}
        self.waves: dict[RotaryPositions, Array] = {}

    def attention(self, heads: int, width: int, like: Array) -> CachedAttention:
        if (heads, width) not in self.attentions:
            sizes = len(like) // self._beams, self._beams, heads, width
            self.attentions[heads, width] = CachedAttention(sizes, like.dtype.type, self.plain.empty, self._careful)
        return self.attentions[heads, width]


class PackedWeights:
    """Copies of a model's weights in the order in which products of few rows read them, each made when first wanted.

    They may be kept from one batch to the next, where `renew` says so.
    """

    def __init__(self) -> None:
        self._packed: dict[Parameter, Packed] = {}
        self._room = np.empty(0, np.uint8)
        self._sample: Array | None = None
        self._bytes = 0
        self._recorder: tuple[Model, bool] | None = None

    def renew(self, vector: Array) -> bool:
        """Forget all copies if the model, whose parameters are `vector`, has changed since the last time.

        A sample of the parameters is compared, which training, averaging and loading all change. Returns True for a
        changed model.
        """
        sample = vector[:: max(1, len(vector) // _SAMPLE)]
        changed = self._sample is None or not np.array_equal(sample, self._sample)
        if changed:
            self._packed, self._bytes, self._sample, self._recorder = {}, 0, sample.copy(), None
        return changed

    def recorder(self, model: Seq2Seq | GPT) -> tuple[Model, bool]:
        """Return the model with leaves that record, and True if a step reads more weights than the cache holds."""
        if self._recorder is None or self._recorder[0].original is not model:
            decoder = model.trunk.decoder if isinstance(model, GPT) else model.decoder
            read = [*decoder.parameters().values(), model.output.table]
            self._recorder = recorder_of(model, _KINDS), sum(each.data.nbytes for each in read) > _CACHE_BYTES
        return self._recorder

    def for_rows(self, parameter: Parameter, weight: Array, rows: int) -> Array | Packed:
        """Return the weight (D, F) of a parameter in the form that multiplies `rows` rows best."""
        wanted = rows >= _LEAST_PACKED_ROWS
        if wanted and parameter not in self._packed and self._bytes + weight.nbytes <= _MOST_PACKED_BYTES:
            self._packed[parameter] = pack(weight, empty=self._empty)
            self._bytes += weight.nbytes
        return self._packed.get(parameter, weight) if wanted else weight

    def _empty(self, shape: tuple[int, ...], dtype: type) -> Array:
        """Take memory from large pieces, whose pages the system may join to huge ones: a tenth faster for 4 rows."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if len(self._room) < size:
            self._room = aligned_zeros(max(size, _ROOM), np.uint8)
        array, self._room = self._room[:size], self._room[size + -size % 64 :]
        return array.view(dtype).reshape(shape)


def _product(
    x: Array, parameter: Parameter, weight: Array | Int8Matrix, bias: Parameter | None, tape: _StepRecording
) -> Array:
    """x W + b.  weight: the data of the parameter, or that transposed."""
    dtype, rows = x.dtype.type, len(x)
    out = tape.empty((rows, weight.shape[1]), dtype)
    given, y = plain(x), plain(out)
    if isinstance(weight, Int8Matrix):
        scratch = [tape.empty(*each) for each in weight.scratch(rows, dtype)]
        tape.note(partial(weight.prepared(*map(plain, scratch), bias and bias.data), given, y))
        return out
    if tape.streams and rows <= _FEWEST_ROWS and weight.strides[0] < weight.strides[1]:
        # From memory `vecdot` reads 30 GB/s, BLAS's product of a vector with a matrix that lies transposed 13.
        tape.note(partial(np.vecdot, weight.T[:, None], given, y.T))
    else:
        for call in product_calls(given, tape.packed.for_rows(parameter, weight, rows), y):
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
    def _scaled(self) -> tuple[Array, Array, Array | None, Array | None]:
        """√D gain, D eps, and for layer norm a column of 1 / D and the bias."""
        norm, gain = self.original, self.original.gain.data
        width, centres = len(gain), isinstance(norm, LayerNorm)
        average = np.full((width, 1), 1 / width, gain.dtype) if centres else None
        bias = norm.bias.data if centres and norm.bias else None
        return gain * math.sqrt(width), np.full(1, norm.eps * width, gain.dtype), average, bias

    def forward(self, x: Array, tape: _StepRecording) -> Array:
        gain, eps, average, bias = self._scaled
        rows, dtype = len(x), x.dtype.type
        out, lent = tape.empty(x.shape, dtype), tape.empty((2, rows, 1), dtype)
        centred, y, (mean, spread) = plain(x), plain(out), plain(lent)
        if rows == 1:
            tape.note(partial(_normal_of_one_row, centred[0], y[0], gain, eps[0], average, bias))
            return out
        if average is not None:
            tape.note(partial(np.matmul, centred, average, mean))
            tape.note(partial(np.subtract, centred, mean, y))
            centred = y
        tape.note(partial(np.vecdot, centred, centred, spread[:, 0]))
        tape.note(partial(np.add, spread, eps, spread))
        tape.note(partial(np.sqrt, spread, spread))
        tape.note(partial(np.divide, centred, spread, y))
        tape.note(partial(np.multiply, y, gain, y))
        if bias is not None:
            tape.note(partial(np.add, y, bias, y))
        return out


def _normal_of_one_row(
    x: Array, out: Array, gain: Array, eps: float, average: Array | None, bias: Array | None
) -> None:
    """Normalise one row, (D,) -> (D,): numbers are cheaper than arrays of one."""
    if average is not None:
        x = np.subtract(x, x.dot(average[:, 0]), out)
    np.divide(x, math.sqrt(x.dot(x) + eps), out)
    np.multiply(out, gain, out)
    if bias is not None:
        np.add(out, bias, out)


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


class _RotaryPositions(RotaryPositions):
    def turn(self, x: Array, rows: _StepRows, tape: _StepRecording) -> None:
        """Turn by waves that are looked up once in a step, for all layers."""
        if self.original not in tape.waves:
            tape.waves[self.original] = tape.empty((2, len(x), self.head_dim // 2), x.dtype.type)
            place, look_up = plain(tape.waves[self.original]), self.original.waves
            tape.note(lambda: np.copyto(place, look_up(rows, place.dtype)))
        cosine, sine = plain(tape.waves[self.original])
        tape.call(rotary, x, cosine, sine, x)


class _HeadNorm(HeadNorm):
    def normalize(self, x: Array, tape: _StepRecording) -> None:
        """As `_Norm`, in place."""
        gain, width, dtype = self.gain.data, len(self.gain.data), x.dtype.type
        scaled, eps = gain * math.sqrt(width), np.full(1, self.eps * width, gain.dtype)
        lent = tape.empty((*x.shape[:2], 1), dtype)
        heads, spread = plain(x), plain(lent)
        tape.note(partial(np.vecdot, heads, heads, spread[..., 0]))
        tape.note(partial(np.add, spread, eps, spread))
        tape.note(partial(np.sqrt, spread, spread))
        tape.note(partial(np.divide, heads, spread, heads))
        tape.note(partial(np.multiply, heads, scaled, heads))


class _SelfAttention(SelfAttention):
    def _over_cache(self, projected: Array, context: Array, rows: _StepRows, tape: _StepRecording) -> None:
        query, key, value = np.split(plain(projected), self._bounds, axis=1)
        key, value = (part.reshape(rows.cache.texts, -1, part.shape[1]) for part in (key, value))
        attention = tape.attention(self.num_heads, self.head_dim, context)
        keys, values = rows.cache.room(self.original, key)
        by_head = (part.reshape(*part.shape[:2], -1, self.head_dim) for part in (keys, values))
        attend = attention.prepared(plain(query), *by_head, plain(context), attention.totals())

        def over_the_cache() -> None:
            keys[:, rows.new], values[:, rows.new] = key, value
            attend(rows.new.stop, rows.read)

        tape.note(over_the_cache)


class _CrossAttention(CrossAttention):
    def _over_cache(self, query: Array, memory: Array, context: Array, rows: _StepRows, tape: _StepRecording) -> None:
        keys, values, real = rows.cache.memory(self.original)
        read = None if real is None else real[:, None].astype(keys.dtype)
        attention = tape.attention(self.num_heads, self.head_dim, context)
        attend = attention.prepared(plain(query), keys, values, plain(context), attention.totals())
        tape.note(partial(attend, keys.shape[1], read))


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
    LearnedPositions: OneCall,
}

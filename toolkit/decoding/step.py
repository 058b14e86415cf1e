"""One token more of every sequence: what the ordinary forward over the cache computes, in as few calls as possible.

A step has few rows, so calls cost as much as arithmetic. Nothing is kept for a backward pass, results go to memory that
all layers use in turn, and the calls are prepared once for all steps with as many sequences. What a layer means stands
in its module, and the numbers are the same.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from toolkit.decoding.cache import Cache
from toolkit.decoding.step_attention import StepAttention
from toolkit.decoding.step_layers import (
    Now,
    Operations,
    Places,
    StepNorm,
    cross_attention_operations,
    feed_forward_operations,
    linear_operations,
    read_tokens,
    self_attention_operations,
)
from toolkit.decoding.step_weights import PackedWeights
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.blocks import Block, DecoderBlock, Residual
from toolkit.nn.layers import FeedForward
from toolkit.nn.tape import Tape

_OPERATIONS = {
    SelfAttention: self_attention_operations,
    CrossAttention: cross_attention_operations,
    FeedForward: feed_forward_operations,
}

# So many bytes of weights are still in the last cache when the next step wants them (one core of a server).
_CACHE_BYTES = 12 << 20


class Step:
    """The decoder of a model, from the last tokens of all sequences in a cache to the scores of the next ones.

    What a `CrossAttention` remembers of the memory must be in the cache already.
    """

    def __init__(self, model: Seq2Seq | GPT, cache: Cache, weights: PackedWeights, tape: Tape):
        if isinstance(model, GPT):
            self._input, blocks, norm = model.trunk.input, model.trunk.decoder.blocks, model.trunk.decoder.norm
        else:
            self._input, blocks, norm = model.target, model.decoder.blocks, model.decoder.norm
        self._cache, self._weights, self._tape = cache, weights, tape
        self._sub_layers = [(each.pre_norm, StepNorm(each.norm), each.layer) for each in _residuals(blocks)]
        self._norm = norm and StepNorm(norm)
        read = sum(weight.data.nbytes for _, _, layer in self._sub_layers for weight in layer.parameters().values())
        self._streams = read + model.output.table.data.nbytes > _CACHE_BYTES
        self._heads = blocks[0].attention.layer.heads, blocks[0].attention.layer.head_width
        self._table, self._bias = model.output.table.data, model.output.bias and model.output.bias.data
        self._now: Now | None = None
        self._arrangement: tuple[int, ...] = ()
        self._careful = False

    def logits(self, ids: Array) -> Array:
        """Read one token of every sequence, and score all tokens as the next one.  Shapes: (N,) -> (N, V).

        The result is good until the next step, and the caller's to change.
        """
        now = self._begin(len(ids))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            self._do(ids, now)
        if not now.attention.is_safe:
            self._careful = now.attention.careful = True  # for the rest too: what was large once will be so again
            self._do(ids, now)
        self._cache.end_step()
        return self._scores

    def _do(self, ids: Array, now: Now) -> None:
        read_tokens(self._input, ids, now.places, self._x, self._tape)
        for operation in self._operations:
            operation()

    def _begin(self, count: int) -> Now:
        """What the layers need to know of this step; all is prepared again only where sequences are others now."""
        new, read = self._cache.begin_step(self._table.dtype)
        arrangement = self._cache.texts, count, self._cache.moves
        if arrangement != self._arrangement:
            self._arrangement, self._now = arrangement, self._fitted(self._cache.texts, count)
            self._operations = list(self._prepared(self._now))
        now, positions = self._now, self._cache.lengths
        now.new, now.read, now.places = new, read, Places(positions, int(positions.max()) + 1)
        return now

    def _fitted(self, texts: int, count: int) -> Now:
        dtype = self._table.dtype
        sizes, layers = (texts, count // texts, *self._heads), len(self._sub_layers)
        attention = StepAttention(sizes, layers, dtype, self._tape.empty, self._careful)
        return Now(self._cache, texts, count, attention, self._weights, self._streams, self._tape)

    def _prepared(self, now: Now) -> Operations:
        """All operations of a step, from `_x` to `_scores`."""
        size, width = self._table.shape
        x, normal, branch = (now.array(name, width) for name in ("x", "normal", "branch"))
        self._x, self._scores = x, now.array("scores", size)
        for number, (pre_norm, norm, layer) in enumerate(self._sub_layers):
            of_layer = _OPERATIONS[type(layer)]
            if pre_norm:
                yield from norm.operations(x, normal, now)
                yield from of_layer(layer, number, normal, branch, now)
                yield partial(np.add, x, branch, x)
            else:
                yield from of_layer(layer, number, x, branch, now)
                yield partial(np.add, x, branch, x)
                yield from norm.operations(x, x, now)
        if self._norm:
            yield from self._norm.operations(x, x, now)
        yield from linear_operations(x, self._table.T, self._bias, self._scores, now)


def _residuals(blocks: Sequence[Block | DecoderBlock]) -> Iterator[Residual]:
    """The sub-layers of all blocks in order."""
    for block in blocks:
        yield block.attention
        if isinstance(block, DecoderBlock):
            yield block.cross_attention
        yield block.feed_forward

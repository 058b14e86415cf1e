"""Multi-head attention over rows (Vaswani et al. 2017, section 3.2.2).

The mathematics of one stack of sequences is in `toolkit.functional.attention`; here rows are viewed as such stacks,
span by span, and heads are views: (N, H·K) is (N, H, K), with H·K = D where nothing else is said. Self-attention may
have fewer heads of keys and values than of queries, G of them.
"""

from typing import Any

import numpy as np

from toolkit.functional.arrays import Array, Saved
from toolkit.functional.attention import (
    attention,
    attention_backward,
    causal_attention,
    causal_attention_backward,
    causal_probabilities,
    scaled_scores,
)
from toolkit.nn.layers import HeadNorm, Linear, RotaryPositions
from toolkit.nn.module import Initializer, Module, xavier_uniform
from toolkit.nn.rows import CrossSpan, Rows, Span
from toolkit.nn.tape import Tape


class _Attention(Module):
    """Base of self- and cross-attention: the division into heads and the attention of one stack."""

    def __init__(self, d_model: int, num_heads: int, dropout: float, head_dim: int = 0):
        self.num_heads, self.head_dim = num_heads, head_dim or d_model // num_heads
        self.dropout = dropout

    def _stack(self, x: Array, span: Span) -> Array:
        """The rows of a span as (B, T, H, K), a view."""
        return self._split(x[span.rows], span.count, span.length)

    def _split(self, x: Array, count: int, length: int) -> Array:
        return x.reshape(count, length, x.shape[-1] // self.head_dim, self.head_dim)

    def _attend(
        self,
        query: Array,
        key: Array,
        value: Array,
        visible: Array | None,
        out: Array,
        where: Span | CrossSpan,
        tape: Tape,
    ) -> Saved:
        """The attention of one stack, shown to the tape's recorder: "scores", (B, H, T, S), of all keys, unseen ones
        too, and "probabilities", (B, H, S, T), before dropout."""
        mask, scale = tape.keep_mask((len(query), self.num_heads, key.shape[1], query.shape[1]), self.dropout)
        saved = attention(query, key, value, visible, mask, scale, out, tape.empty)[1]
        self._show_scores(query, key, where, tape)
        tape.show(self, "probabilities", saved[3], where)
        return saved

    def _show_scores(self, query: Array, key: Array, where: Span | CrossSpan, tape: Tape) -> None:
        if tape.records(self, "scores"):
            tape.show(self, "scores", scaled_scores(query, key).swapaxes(-1, -2), where)

    def _show(self, tape: Tape, **values: Array) -> None:
        """Show rows to the tape's recorder, head by head: (N, H, K) of (N, H·K)."""
        for name, value in values.items():
            tape.show(self, name, value.reshape(len(value), -1, self.head_dim))


class SelfAttention(_Attention):
    """Attention of every sequence over itself; with `causal`, over itself up to the row that asks.

    Shapes: (N, D) -> (N, D). One product gives queries, keys and values, (N, H·K + 2·G·K). Where `rows` has a cache,
    keys and values are added to it, and what it already held is attended to as well.
    num_key_value_heads: G, a divisor of `num_heads`; 0 is as many. rotary: turns queries and keys by their positions.
    initial, output_initial: of the first and the last projection, where they are not Xavier's. output_bias: whether the
    last has a bias; None: as the first. head_dim: K; 0: D / H. qk_norm_eps: of the norms of the heads of queries and
    of keys, before they are turned; None: they have none.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        causal: bool = False,
        num_key_value_heads: int = 0,
        rotary: RotaryPositions | None = None,
        initial: Initializer | None = None,
        output_initial: Initializer | None = None,
        output_bias: bool | None = None,
        head_dim: int = 0,
        qk_norm_eps: float | None = None,
    ):
        super().__init__(d_model, num_heads, dropout, head_dim)
        self.causal, self.rotary = causal, rotary
        d_query, d_key_value = num_heads * self.head_dim, (num_key_value_heads or num_heads) * self.head_dim
        self._bounds = [d_query, d_query + d_key_value]  # where keys and values begin in the product
        initial = initial or xavier_uniform(d_model, d_query)
        self.query_key_value = Linear(d_model, d_query + 2 * d_key_value, bias, initial, splits=self._bounds)
        self.query_norm = None if qk_norm_eps is None else HeadNorm(self.head_dim, qk_norm_eps)
        self.key_norm = None if qk_norm_eps is None else HeadNorm(self.head_dim, qk_norm_eps)
        self.output = Linear(d_query, d_model, bias if output_bias is None else output_bias, output_initial)

    def forward(self, x: Array, rows: Rows, tape: Tape) -> Array:
        projected = self.query_key_value.forward(x, tape)
        if self.query_norm:
            self.query_norm.normalize(self._turned(projected)[:, : self.num_heads], tape)
            self.key_norm.normalize(self._turned(projected)[:, self.num_heads :], tape)
        if self.rotary:
            self.rotary.turn(self._turned(projected), rows, tape)
        context = tape.empty((len(x), self._bounds[0]), x.dtype)
        attend = self._over_rows if rows.cache is None else self._over_cache
        if tape.recording:
            query, key, value = np.split(projected, self._bounds, axis=1)
            self._show(tape, query=query, key=key, value=value)
        tape.push(self, (attend(projected, context, rows, tape), rows))
        tape.show(self, "context", context)
        return self.output.forward(context, tape)

    def _turned(self, projected: Array) -> Array:
        """The heads of queries and keys, which are normalised and turned: a view, (N, H + G, K)."""
        return projected[:, : self._bounds[1]].reshape(len(projected), -1, self.head_dim)

    def _over_rows(self, projected: Array, context: Array, rows: Rows, tape: Tape) -> list[Saved]:
        query, key, value = np.split(projected, self._bounds, axis=1)
        saved = []
        for span in rows.spans:
            stacks, out = [self._stack(part, span) for part in (query, key, value)], self._stack(context, span)
            if self.causal:
                saved.append(self._attend_to_past(*stacks, out, span, tape))
            else:
                saved.append(self._attend(*stacks, None, out, span, tape))
        return saved

    def _attend_to_past(self, query: Array, key: Array, value: Array, out: Array, span: Span, tape: Tape) -> Saved:
        """As `_attend`, of every row to those up to itself."""
        mask, scale = tape.keep_mask((span.count, self.num_heads, span.length, span.length), self.dropout)
        saved = causal_attention(query, key, value, mask, scale, out, tape.empty)[1]
        if tape.recording:
            self._show_scores(query, key, span, tape)
            tape.show(self, "probabilities", causal_probabilities(saved), span)
        return saved

    def _over_cache(self, projected: Array, context: Array, rows: Rows, tape: Tape) -> None:
        query, new = np.split(projected, self._bounds[:1], axis=1)
        keys, values = np.split(rows.cache.extend(self, new, rows), 2, axis=2)
        for span, seen, visible in rows.cached_spans:
            key, value = (self._split(x[span.sequences, :seen], span.count, seen) for x in (keys, values))
            self._attend(self._stack(query, span), key, value, visible, self._stack(context, span), span, tape)

    def backward(self, dy: Array, tape: Tape) -> Array:
        dcontext = self.output.backward(dy, tape)
        saved, rows = tape.pop(self)
        dprojected = tape.empty((len(dcontext), self.query_key_value.weight.shape[1]), dy.dtype)
        parts = np.split(dprojected, self._bounds, axis=1)
        attend_backward = causal_attention_backward if self.causal else attention_backward
        for span, of_span in zip(rows.spans, saved, strict=True):
            out = tuple(self._stack(part, span) for part in parts)
            attend_backward(self._stack(dcontext, span), of_span, out, tape.empty)
        if self.rotary:
            self.rotary.turn_back(self._turned(dprojected), tape)
        if self.query_norm:
            self.key_norm.normalize_back(self._turned(dprojected)[:, self.num_heads :], tape)
            self.query_norm.normalize_back(self._turned(dprojected)[:, : self.num_heads], tape)
        return self.query_key_value.backward(dprojected, tape)


class CrossAttention(_Attention):
    """Attention of every sequence over the memory that belongs to it.

    Shapes: x (N, D), memory (M, D) -> (N, D). Backward returns (dx, dmemory). Where `rows` has a cache, the memory's
    keys and values are computed at the first call and kept in it.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__(d_model, num_heads, dropout)
        self.query = Linear(d_model, d_model, bias)
        self.key_value = Linear(d_model, 2 * d_model, bias, xavier_uniform(d_model, d_model), splits=(d_model,))
        self.output = Linear(d_model, d_model, bias)

    def forward(self, x: Array, memory: Array, rows: Rows, tape: Tape) -> Array:
        query = self.query.forward(x, tape)
        context = tape.empty(x.shape, x.dtype)
        attend = self._over_memory if rows.cache is None else self._over_cache
        if tape.recording:
            self._show(tape, query=query)
        tape.push(self, (attend(query, memory, context, rows, tape), rows, len(memory)))
        tape.show(self, "context", context)
        return self.output.forward(context, tape)

    def _over_memory(self, query: Array, memory: Array, context: Array, rows: Rows, tape: Tape) -> list[Saved]:
        key_value = self.key_value.forward(memory, tape)
        if tape.recording:
            key, value = np.split(key_value, 2, axis=1)
            self._show(tape, key=key, value=value)
        saved = []
        for where in rows.cross_spans:
            span, keys, real = where
            gathered = tape.empty((keys.size, key_value.shape[1]), key_value.dtype)
            np.take(key_value, keys.reshape(-1), axis=0, out=gathered, mode="clip")
            key, value = (self._split(part, *keys.shape) for part in np.split(gathered, 2, axis=1))
            visible = None if real is None else real[:, None, :, None]
            out = self._stack(context, span)
            saved.append(self._attend(self._stack(query, span), key, value, visible, out, where, tape))
        return saved

    def _over_cache(self, query: Array, memory: Array, context: Array, rows: Rows, tape: Tape) -> None:
        cache = rows.cache
        if not cache.has_memory(self):
            self.remember(memory, cache, tape)
        seen, real = cache.visible
        keys, values = cache.memory(self)[:, :, :seen]
        for span in rows.memory_spans:
            key, value = (x[span.sequences] for x in (keys, values))
            visible = None if real is None else real[span.sequences, None, :, None]
            self._attend(self._stack(query, span), key, value, visible, self._stack(context, span), span, tape)

    def remember(self, memory: Array, cache: Any, tape: Tape) -> None:
        """Put the keys and values of the memory into the cache."""
        key_value = self.key_value.forward(memory, tape).reshape(len(memory), 2, self.num_heads, self.head_dim)
        cache.store_memory(self, key_value[:, 0], key_value[:, 1])

    def backward(self, dy: Array, tape: Tape) -> tuple[Array, Array]:
        dcontext = self.output.backward(dy, tape)
        saved, rows, memory_count = tape.pop(self)
        dquery = tape.empty(dcontext.shape, dy.dtype)
        dkey_value = tape.empty((memory_count, 2 * dcontext.shape[1]), dy.dtype)
        if len(rows.memory_pieces[0]) < len(rows.memory.lengths):
            dkey_value[...] = 0  # a memory that nobody attends to
        for (span, keys, real), of_span in zip(rows.cross_spans, saved, strict=True):
            gathered = tape.empty((keys.size, dkey_value.shape[1]), dy.dtype)
            dkey, dvalue = (self._split(part, *keys.shape) for part in np.split(gathered, 2, axis=1))
            out = (self._stack(dquery, span), dkey, dvalue)
            attention_backward(self._stack(dcontext, span), of_span, out, tape.empty)
            if real is None:
                dkey_value[keys.reshape(-1)] = gathered
            else:
                kept = real.reshape(-1)
                dkey_value[keys.reshape(-1)[kept]] = gathered[kept]
        dmemory = self.key_value.backward(dkey_value, tape)
        return self.query.backward(dquery, tape), dmemory

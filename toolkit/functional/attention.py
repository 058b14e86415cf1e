"""Scaled dot-product attention (Vaswani et al. 2017, eq. 1) for a stack of sequences of one length.

Scores are kept as [key, query]: the softmax then reduces over the second-to-last axis, which runs along consecutive
memory, and the products with keys and values need no transposed copy.

Causal attention goes through blocks of queries: keys that come after a whole block are never multiplied with it. Of n
blocks (n + 1) / 2n of the square of scores is left.
"""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved

# Below this bound on every score exp() neither overflows nor loses a row to underflow, and the usual subtraction of
# the largest score can be left out.
_SAFE_SCORE = 40.0


def attention(
    query: Array,
    key: Array,
    value: Array,
    visible: Array | None = None,
    mask: Array | None = None,
    scale: float = 1.0,
    out: Array | None = None,
    empty: Empty = np.empty,
) -> tuple[Array, Saved]:
    """Every query takes the average of the values, weighted by how well their keys match it.

        P = softmax over s of (q_t · k_s / √K) among the keys that t may see        context_t = Σ_s P_ts v_s

    Shapes: query (B, T, H, K), key and value (B, S, G, K), visible broadcasts to (B, H, S, T) and is 1 where the
    key may be seen, 0 elsewhere (None: everywhere; every query must see a key), mask (B, H, S, T) and scale are dropout
    on P -> context (B, T, H, K), written to `out` where given. Arguments may be strided views. With G < H, every H / G
    consecutive query heads share a head of keys and values (grouped queries, Ainslie et al. 2023).
    """
    groups = key.shape[2]
    probabilities = scaled_scores(query, key, empty)
    softmax_over_keys(probabilities, visible)
    weights = probabilities if mask is None else _dropped(probabilities, mask, scale, empty)
    context = empty(query.shape, query.dtype) if out is None else out
    by_query = _grouped(weights, groups).swapaxes(-1, -2)
    np.matmul(by_query, _by_head(value, groups), out=_by_head(context, groups))
    return context, (query, key, value, probabilities, mask, scale, context)


def scaled_scores(query: Array, key: Array, empty: Empty = np.empty) -> Array:
    """q_t · k_s / √K of every query with every key, (B, H, S, T), of query (B, T, H, K) and key (B, S, G, K)."""
    batch, length, heads, width = query.shape
    groups = key.shape[2]
    scores = empty((batch, heads, key.shape[1], length), query.dtype)
    np.matmul(_by_head(key, groups), _by_head(query, groups).swapaxes(-1, -2), out=_grouped(scores, groups))
    scores *= 1 / math.sqrt(width)
    return scores


def softmax_over_keys(scores: Array, visible: Array | None) -> None:
    """Turn scores (B, H, S, T) into probabilities over S, in place; invisible keys get exactly 0."""
    if scores.size == 0:
        return
    if max(scores.max(), -scores.min()) > _SAFE_SCORE:
        seen = scores if visible is None else np.where(visible, scores, -np.inf)
        scores -= seen.max(axis=-2, keepdims=True)
        np.minimum(scores, 0, out=scores)  # an invisible score may exceed the largest visible one
    np.exp(scores, out=scores)
    if visible is not None:
        scores *= visible
    ones = np.ones((1, scores.shape[-2]), scores.dtype)
    scores *= 1 / (ones @ scores)  # the sums over S, several times faster than `scores.sum`


def attention_backward(
    dcontext: Array, saved: Saved, out: tuple[Array, Array, Array] | None = None, empty: Empty = np.empty
) -> tuple[Array, Array, Array]:
    """Each score moves all probabilities of its query, so its gradient loses their weighted average (the Jacobian of
    softmax); that average, Σ_s P_ts dP_ts, is also dcontext_t · context_t.

        dV = Pᵀ dcontext        dP = dcontext Vᵀ        dS = P · (dP - Σ_s P dP) / √K        dQ = dS K        dK = dSᵀ Q

    With dropout, V and dP meet the dropped weights. Returns dquery (B, T, H, K), dkey and dvalue (B, S, G, K),
    written to the three arrays of `out` where given.
    """
    query, key, value, probabilities, mask, scale, context = saved
    if out is None:
        out = tuple(empty(x.shape, x.dtype) for x in (query, key, value))
    dquery, dkey, dvalue = out
    groups = key.shape[2]
    by_head = _by_head(dcontext, groups)  # (B, G, H / G, T, K)
    dscores = empty(probabilities.shape, query.dtype)
    grouped = _grouped(dscores, groups)
    np.matmul(_by_head(value, groups), by_head.swapaxes(-1, -2), out=grouped)
    weights = probabilities
    if mask is not None:
        weights = _dropped(probabilities, mask, scale, empty)
        dscores *= mask
        dscores *= scale
    _sum_over_group(_grouped(weights, groups), by_head, dvalue, empty)
    dscores -= np.vecdot(dcontext, context).swapaxes(1, 2)[:, :, None, :]
    dscores *= probabilities
    dscores *= 1 / math.sqrt(query.shape[-1])
    np.matmul(grouped.swapaxes(-1, -2), _by_head(key, groups), out=_by_head(dquery, groups))
    _sum_over_group(grouped, _by_head(query, groups), dkey, empty)
    return dquery, dkey, dvalue


def _by_head(x: Array, groups: int) -> Array:
    """A view of (B, T, H, K) as (B, G, H / G, T, K): the query heads that share a key head stand together."""
    batch, length, heads, width = x.shape
    return x.reshape(batch, length, groups, heads // groups, width).transpose(0, 2, 3, 1, 4)


def _grouped(scores: Array, groups: int) -> Array:
    """A view of (B, H, S, T) as (B, G, H / G, S, T)."""
    batch, heads, *rest = scores.shape
    return scores.reshape(batch, groups, heads // groups, *rest)


def _sum_over_group(weights: Array, by_query: Array, out: Array, empty: Empty) -> None:
    """Add up what reaches a key head through all query heads that share it, in `out` (B, S, G, K).

    Shapes: weights (B, G, H / G, S, T), by_query (B, G, H / G, T, K).
    """
    target = out.transpose(0, 2, 1, 3)
    if weights.shape[2] == 1:
        np.matmul(weights[:, :, 0], by_query[:, :, 0], out=target)
    else:
        of_each = empty((*weights.shape[:4], by_query.shape[-1]), out.dtype)
        np.sum(np.matmul(weights, by_query, out=of_each), axis=2, out=target)


def _dropped(probabilities: Array, mask: Array, scale: float, empty: Empty) -> Array:
    weights = np.multiply(probabilities, mask, out=empty(probabilities.shape, probabilities.dtype))
    weights *= scale
    return weights


# Queries of a block: with fewer, the products become too small to run at full speed.
_BLOCK = 64
# With so many blocks or more, each head is read so often that it pays to put its rows one after the other first.
_MANY_BLOCKS = 3


@lru_cache(maxsize=512)
def causal_mask(queries: int, keys: int) -> Array:
    """(1, 1, S, T): 1 where query t of the last T of S tokens sees key s ≤ t, 0 elsewhere.

    Numbers, not truth values: they are multiplied by scores, which would have to convert them each time.
    """
    steps = np.arange(keys)
    return (steps[:, None] <= steps[keys - queries :]).astype(np.float32)[None, None]


def causal_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    scale: float = 1.0,
    out: Array | None = None,
    empty: Empty = np.empty,
) -> tuple[Array, list[Saved]]:
    """`attention` of every query to the keys up to its own:

        P = softmax over s ≤ t of (q_t · k_s / √K)        context_t = Σ_{s ≤ t} P_ts v_s

    Shapes: query (B, T, H, K), key and value (B, T, G, K), mask (B, H, T, T) -> context (B, T, H, K).
    """
    context = empty(query.shape, query.dtype) if out is None else out
    blocks, saved = _blocks(query.shape[1]), []
    if len(blocks) >= _MANY_BLOCKS:
        query, key, value = (_copied(x, empty) for x in (query, key, value))
    for rows in blocks:
        stop, count = rows.stop, rows.stop - rows.start
        visible = causal_mask(count, stop) if count > 1 else None
        dropped = None if mask is None else mask[:, :, :stop, rows]
        parts = query[:, rows], key[:, :stop], value[:, :stop]
        saved.append(attention(*parts, visible, dropped, scale, context[:, rows], empty)[1])
    return context, saved


def causal_attention_backward(
    dcontext: Array, saved: list[Saved], out: tuple[Array, Array, Array] | None = None, empty: Empty = np.empty
) -> tuple[Array, Array, Array]:
    """Every block of queries adds to the gradients of the keys and values that it saw; the last one saw all.

        dK_s = Σ over blocks of dK_s        dV_s = Σ over blocks of dV_s        each by `attention_backward`

    Returns dquery (B, T, H, K), dkey and dvalue (B, T, G, K), written to the three arrays of `out` where given.
    """
    blocks = _blocks(dcontext.shape[1])
    if out is None:
        shapes = dcontext.shape, saved[-1][1].shape, saved[-1][2].shape
        out = tuple(empty(shape, dcontext.dtype) for shape in shapes)
    many = len(blocks) >= _MANY_BLOCKS
    dquery, dkey, dvalue = (_head_by_head(x, empty) for x in out) if many else out
    dcontext = _copied(dcontext, empty) if many else dcontext
    last, *earlier = zip(reversed(blocks), reversed(saved), strict=True)
    attention_backward(dcontext[:, last[0]], last[1], (dquery[:, last[0]], dkey, dvalue), empty)
    for rows, of_block in earlier:
        added = tuple(_head_by_head(x[:, : rows.stop], empty) for x in (dkey, dvalue))
        attention_backward(dcontext[:, rows], of_block, (dquery[:, rows], *added), empty)
        for gradient, part in zip((dkey, dvalue), added, strict=True):
            gradient[:, : rows.stop] += part
    if many:
        for gradient, found in zip(out, (dquery, dkey, dvalue), strict=True):
            gradient[...] = found
    return out


def _head_by_head(x: Array, empty: Empty) -> Array:
    """Memory for an array like x, (B, T, H, K), in which every head lies in one piece."""
    batch, length, heads, width = x.shape
    return empty((batch, heads, length, width), x.dtype).swapaxes(1, 2)


def _copied(x: Array, empty: Empty) -> Array:
    """The same numbers, head by head."""
    copy = _head_by_head(x, empty)
    copy[...] = x
    return copy


def causal_probabilities(saved: list[Saved]) -> Array:
    """P, (B, H, T, T) as [key, query], before dropout, put together from the blocks."""
    parts = [of_block[3] for of_block in saved]
    length = parts[-1].shape[2]
    whole = np.zeros((*parts[0].shape[:2], length, length), parts[0].dtype)
    for rows, part in zip(_blocks(length), parts, strict=True):
        whole[:, :, : rows.stop, rows] = part
    return whole


def _blocks(length: int) -> list[slice]:
    """Blocks of equal size, about `_BLOCK` queries each."""
    count = max(1, length // _BLOCK)
    bounds = [length * block // count for block in range(count + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]

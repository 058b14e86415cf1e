"""Causal attention in blocks of queries: keys that come after a whole block are never multiplied with it.

Under a causal mask half of the square of scores is computed for nothing. A block of queries skips what lies to the
right of it, so that of n blocks (n + 1) / 2n of the square is left.
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved
from toolkit.functional.attention import attention, attention_backward

# Queries of a block: with fewer, the products become too small to run at full speed.
_BLOCK = 64


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
    saved = []
    for rows in _blocks(query.shape[1]):
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
    dquery, dkey, dvalue = out
    last, *earlier = zip(reversed(blocks), reversed(saved), strict=True)
    attention_backward(dcontext[:, last[0]], last[1], (dquery[:, last[0]], dkey, dvalue), empty)
    for rows, of_block in earlier:
        added = tuple(empty(x[:, : rows.stop].shape, x.dtype) for x in (dkey, dvalue))
        attention_backward(dcontext[:, rows], of_block, (dquery[:, rows], *added), empty)
        for gradient, part in zip((dkey, dvalue), added, strict=True):
            gradient[:, : rows.stop] += part
    return dquery, dkey, dvalue


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

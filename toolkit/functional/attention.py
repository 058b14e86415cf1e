"""Scaled dot-product attention (Vaswani et al. 2017, eq. 1) for a stack of sequences of one length.

Scores are kept as [key, query]: the softmax then reduces over the second-to-last axis, which runs along consecutive
memory, and the products with keys and values need no transposed copy.
"""

import math

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

    Shapes: query (B, T, H, K), key and value (B, S, H, K), visible broadcasts to (B, H, S, T) and is True where the
    key may be seen (None: everywhere; every query must see a key), mask (B, H, S, T) and scale are dropout on P
    -> context (B, T, H, K), written to `out` where given. Arguments may be strided views.
    """
    batch, length, heads, width = query.shape
    shape = (batch, heads, key.shape[1], length)
    probabilities = np.matmul(key.transpose(0, 2, 1, 3), query.transpose(0, 2, 3, 1), out=empty(shape, query.dtype))
    probabilities *= 1 / math.sqrt(width)
    softmax_over_keys(probabilities, visible)
    weights = probabilities if mask is None else _dropped(probabilities, mask, scale, empty)
    context = empty(query.shape, query.dtype) if out is None else out
    np.matmul(weights.swapaxes(-1, -2), value.transpose(0, 2, 1, 3), out=context.transpose(0, 2, 1, 3))
    return context, (query, key, value, probabilities, mask, scale, context)


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
    scores *= 1 / scores.sum(axis=-2, keepdims=True)


def attention_backward(
    dcontext: Array, saved: Saved, out: tuple[Array, Array, Array] | None = None, empty: Empty = np.empty
) -> tuple[Array, Array, Array]:
    """Each score moves all probabilities of its query, so its gradient loses their weighted average (the Jacobian of
    softmax); that average, Σ_s P_ts dP_ts, is also dcontext_t · context_t.

        dV = Pᵀ dcontext        dP = dcontext Vᵀ        dS = P · (dP - Σ_s P dP) / √K        dQ = dS K        dK = dSᵀ Q

    With dropout, V and dP meet the dropped weights. Returns dquery (B, T, H, K), dkey and dvalue (B, S, H, K),
    written to the three arrays of `out` where given.
    """
    query, key, value, probabilities, mask, scale, context = saved
    if out is None:
        out = tuple(empty(x.shape, x.dtype) for x in (query, key, value))
    dquery, dkey, dvalue = out
    by_head = dcontext.transpose(0, 2, 1, 3)  # (B, H, T, K)
    dscores = np.matmul(
        value.transpose(0, 2, 1, 3), by_head.swapaxes(-1, -2), out=empty(probabilities.shape, query.dtype)
    )
    weights = probabilities
    if mask is not None:
        weights = _dropped(probabilities, mask, scale, empty)
        dscores *= mask
        dscores *= scale
    np.matmul(weights, by_head, out=dvalue.transpose(0, 2, 1, 3))
    dscores -= np.vecdot(dcontext, context).swapaxes(1, 2)[:, :, None, :]
    dscores *= probabilities
    dscores *= 1 / math.sqrt(query.shape[-1])
    np.matmul(dscores.swapaxes(-1, -2), key.transpose(0, 2, 1, 3), out=dquery.transpose(0, 2, 1, 3))
    np.matmul(dscores, query.transpose(0, 2, 1, 3), out=dkey.transpose(0, 2, 1, 3))
    return dquery, dkey, dvalue


def _dropped(probabilities: Array, mask: Array, scale: float, empty: Empty) -> Array:
    weights = np.multiply(probabilities, mask, out=empty(probabilities.shape, probabilities.dtype))
    weights *= scale
    return weights

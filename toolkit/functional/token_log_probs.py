"""Log-probabilities of given tokens, fused with the output projection, in chunks of rows.

Preference tuning weighs every token of a reply by a number that depends on all of its log-probabilities, so, unlike in
`output_loss`, the gradient cannot be computed while the logits are at hand. They are projected a second time instead
of being kept: of a whole batch they would be by far the largest array.
"""

import math
from collections.abc import Iterator

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, row_blocks, sum_rows

# The logit of a token that cannot be written. Not -∞: an entropy multiplies it by its probability, 0.
_NEVER = -1e30

# The most logits of one chunk, 16 MB of float32, as in `output_loss`.
_CHUNK_ELEMENTS = 1 << 22


def token_log_probs(
    x: Array,
    weight: Array,
    bias: Array | None,
    labels: Array,
    temperature: float = 1.0,
    excluded: Array | None = None,
    empty: Empty = np.empty,
) -> tuple[tuple[Array, Array], Saved]:
    """What softmax gives the labels, and how undecided it is (its entropy, in nats, which gets no gradient).

        z = (x Wᵀ + b) / τ        log p_n = z_n,label - log Σ_v exp z_nv        H_n = log Σ_v exp z_nv - Σ_v p_nv z_nv

    excluded: ids that have probability 0, because whoever drew the labels never draws them. Were they counted, training
    could hide probability there, where no sample ever finds it.
    Shapes: x (N, D), weight (V, D), bias (V,) or None, labels (N,), τ the temperature -> log_probs and entropies, (N,).
    """
    log_probs, entropies, normalizers = (np.empty(len(x), x.dtype) for _ in range(3))
    for rows, logits in _chunks(x, weight, bias, temperature, excluded, empty):
        index = np.arange(len(logits))
        largest = logits.max(axis=1)
        label_logits = logits[index, labels[rows]] - largest
        logits -= largest[:, None]
        weights = np.exp(logits, out=empty(logits.shape, logits.dtype))
        totals = weights.sum(axis=1)
        log_totals = np.log(totals)
        np.subtract(label_logits, log_totals, out=log_probs[rows])
        np.subtract(log_totals, np.vecdot(weights, logits) / totals, out=entropies[rows])
        np.add(largest, log_totals, out=normalizers[rows])
    return (log_probs, entropies), (x, weight, bias, labels, temperature, excluded, normalizers)


def token_log_probs_backward(
    dlog_probs: Array, saved: Saved, empty: Empty = np.empty
) -> tuple[Array, Array, Array | None]:
    """A label's own logit raises its log-probability, and all logits lower it by their probabilities:

        dz_nv = dlog_p_n (onehot(label_n)_v - p_nv)        dx = dz W / τ        dW = dzᵀ x / τ        db = Σ_n dz_n / τ

    Returns dx (N, D), dweight (V, D), dbias (V,) or None.
    """
    x, weight, bias, labels, temperature, excluded, normalizers = saved
    dx, dweight = empty(x.shape, x.dtype), empty(weight.shape, weight.dtype)
    if len(x) == 0:
        dweight[...] = 0
    dbias = None if bias is None else np.zeros_like(bias)
    for rows, logits in _chunks(x, weight, bias, temperature, excluded, empty):
        dlogits = np.exp(np.subtract(logits, normalizers[rows, None], out=logits), out=logits)
        factors = dlog_probs[rows] * (1 / temperature)
        dlogits *= -factors[:, None]
        dlogits[np.arange(len(dlogits)), labels[rows]] += factors
        np.matmul(dlogits, weight, out=dx[rows])
        if rows.start == 0:
            np.matmul(dlogits.T, x[rows], out=dweight)
        else:
            dweight += np.matmul(dlogits.T, x[rows], out=empty(weight.shape, x.dtype))
        if dbias is not None:
            dbias += sum_rows(dlogits)
    return dx, dweight, dbias


def _chunks(
    x: Array, weight: Array, bias: Array | None, temperature: float, excluded: Array | None, empty: Empty
) -> Iterator[tuple[slice, Array]]:
    """Chunks of rows of about equal size, each with its logits, divided by the temperature."""
    count, vocabulary = len(x), len(weight)
    chunks = max(1, math.ceil(count * vocabulary / _CHUNK_ELEMENTS))
    for rows in row_blocks(count, vocabulary, math.ceil(count / chunks) * vocabulary):
        logits = np.matmul(x[rows], weight.T, out=empty((rows.stop - rows.start, vocabulary), x.dtype))
        if bias is not None:
            logits += bias
        if temperature != 1:
            logits *= 1 / temperature
        if excluded is not None:
            logits[:, excluded] = _NEVER
        yield rows, logits

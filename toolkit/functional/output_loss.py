"""Cross-entropy fused with the output projection, in chunks of rows: the logits of a whole batch are never kept.

With a vocabulary of thousands the logits are by far the largest array of a model, and nobody needs them after the
loss. So each chunk of rows is projected, turned into probabilities, into its loss and into its gradients at once.
"""

import math
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, row_blocks, sum_rows

# The most logits of one chunk, 16 MB of float32. Every chunk adds a whole gradient of the table to the sum, which costs
# more than what smaller chunks, nearer to the cache, save: of 8,000 tokens 500 rows are faster than 130 by a tenth.
_CHUNK_ELEMENTS = 1 << 22


class LossSums(NamedTuple):
    """Sums over the rows of a batch; the caller divides once by all tokens of the update."""

    loss: float  # what is minimised: smoothed
    negative_log_likelihood: float  # unsmoothed, for perplexity
    tokens: int


def output_loss(
    x: Array,
    weight: Array,
    bias: Array | None,
    labels: Array,
    smoothing: float = 0.0,
    prior: Array | None = None,
    want_gradients: bool = True,
    empty: Empty = np.empty,
) -> tuple[LossSums, Saved]:
    """The cross-entropy between softmax(x Wᵀ + b) and the labels, smoothed towards `prior` (Szegedy et al. 2016).

        z = x Wᵀ + b        loss = Σ_n [ log Σ_v exp z_nv - (1 - ε) z_n,label - ε Σ_v prior_v z_nv ]

    `prior` sums to 1 and is 0 for tokens that never occur as labels (padding, reserved symbols): smoothing must not
    teach the model to produce them.
    Shapes: x (N, D), weight (V, D), bias (V,) or None, labels (N,), prior (V,) -> sums over the N rows.
    """
    count, vocabulary = len(x), len(weight)
    dx = empty(x.shape, x.dtype) if want_gradients else None
    dweight = empty(weight.shape, weight.dtype) if want_gradients else None
    if want_gradients and count == 0:
        dweight[...] = 0
    dbias = np.zeros_like(bias) if want_gradients and bias is not None else None
    loss = negative_log_likelihood = 0.0
    chunks = max(1, math.ceil(count * vocabulary / _CHUNK_ELEMENTS))
    for rows in row_blocks(count, vocabulary, math.ceil(count / chunks) * vocabulary):
        logits = np.matmul(x[rows], weight.T, out=empty((rows.stop - rows.start, vocabulary), x.dtype))
        if bias is not None:
            logits += bias
        sums = _chunk_loss(logits, labels[rows], smoothing, prior, want_gradients)
        loss, negative_log_likelihood = loss + sums[0], negative_log_likelihood + sums[1]
        if want_gradients:
            np.matmul(logits, weight, out=dx[rows])  # the logits have become their own gradient
            if rows.start == 0:
                np.matmul(logits.T, x[rows], out=dweight)
            else:
                dweight += np.matmul(logits.T, x[rows], out=empty(weight.shape, x.dtype))
            if dbias is not None:
                dbias += sum_rows(logits)
    return LossSums(loss, negative_log_likelihood, count), (dx, dweight, dbias)


def output_loss_backward(dloss: float, saved: Saved) -> tuple[Array, Array, Array | None]:
    """The gradient of a logit is how far its probability is from its share of the target:

        dz = softmax(z) - (1 - ε) onehot(label) - ε prior        dx = dz W        dW = dzᵀ x        db = Σ_n dz_n

    computed in the forward pass while the logits were at hand, and scaled here. Returns dx (N, D), dweight (V, D),
    dbias (V,) or None.
    """
    if dloss != 1.0:
        for gradient in saved:
            if gradient is not None:
                gradient *= dloss
    return saved


def _chunk_loss(
    logits: Array, labels: Array, smoothing: float, prior: Array | None, want_gradients: bool
) -> tuple[float, float]:
    """The two loss sums of one chunk; `logits` becomes its gradient where wanted, and is used up where not."""
    loss = negative_log_likelihood = 0.0
    ones = np.ones(logits.shape[1], logits.dtype)
    for rows in row_blocks(*logits.shape):
        block, index = logits[rows], np.arange(rows.stop - rows.start)
        block -= block.max(axis=1, keepdims=True)
        label_logits = block[index, labels[rows]]
        prior_logits = float((block @ prior).sum()) if smoothing else 0.0
        np.exp(block, out=block)
        totals = block @ ones
        log_totals = float(np.log(totals).sum(dtype=np.float64))
        label_sum = float(label_logits.sum(dtype=np.float64))
        negative_log_likelihood += log_totals - label_sum
        loss += log_totals - (1 - smoothing) * label_sum - smoothing * prior_logits
        if want_gradients:
            block *= (1 / totals)[:, None]
            if smoothing:
                block -= smoothing * prior
            block[index, labels[rows]] -= 1 - smoothing
    return loss, negative_log_likelihood

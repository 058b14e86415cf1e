"""Cross-entropy and log-probabilities of tokens, fused with the output projection, in chunks of rows.

With a vocabulary of thousands the logits of a whole batch are by far the largest array of a model, and nobody needs
them after the loss. So each chunk of rows is projected, turned into probabilities, into its loss and into its gradients
at once. Preference tuning weighs every token of a reply by a number that depends on all of its log-probabilities: there
the gradient cannot be computed while the logits are at hand, so they are projected a second time instead of being kept.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import BLOCK_ELEMENTS, Array, Empty, Saved, row_blocks, sum_rows

# The most logits of one chunk, 16 MB of float32. Every chunk adds a whole gradient of the table to the sum, which costs
# more than what smaller chunks, nearer to the cache, save: of 8,000 tokens 500 rows are faster than 130 by a tenth.
_CHUNK_ELEMENTS = 1 << 22

# Logits that are turned into probabilities at a time, all in one array: of a wide vocabulary the blocks of other chains
# would be a few rows, and their calls a quarter of the time.
_BLOCK_ELEMENTS = 4 * BLOCK_ELEMENTS

# The logit of a token that cannot be written. Not -∞: an entropy multiplies it by its probability, 0.
_NEVER = -1e30


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
    """Sum the cross-entropies between softmax(x Wᵀ + b) and the labels, smoothed towards `prior` (Szegedy et al. 2016).

        z = x Wᵀ + b        loss = Σ_n [ log Σ_v exp z_nv - (1 - ε) z_n,label - ε Σ_v prior_v z_nv ]

    `prior` sums to 1 and is 0 for tokens that never occur as labels (padding, reserved symbols): smoothing must not
    teach the model to produce them.
    Shapes: x (N, D), weight (V, D), bias (V,) or None, labels (N,), prior (V,) -> sums over the N rows.
    """
    dx, dweight, dbias = _gradients(x, weight, bias, empty) if want_gradients else (None, None, None)
    loss = negative_log_likelihood = 0.0
    for rows, logits in _chunks(x, weight, bias, empty):
        sums = _chunk_loss(logits, labels[rows], smoothing, prior, want_gradients)
        loss, negative_log_likelihood = loss + sums[0], negative_log_likelihood + sums[1]
        if want_gradients:  # the logits have become their own gradient
            _accumulate_chunk(rows, logits, x, weight, (dx, dweight, dbias), empty)
    return LossSums(loss, negative_log_likelihood, len(x)), (dx, dweight, dbias)


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
    for rows in row_blocks(*logits.shape, _BLOCK_ELEMENTS):
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


def token_log_probs(
    x: Array,
    weight: Array,
    bias: Array | None,
    labels: Array,
    temperature: float = 1.0,
    excluded: Array | None = None,
    empty: Empty = np.empty,
) -> tuple[tuple[Array, Array], Saved]:
    """Return the log-probability of each label, and the entropy of softmax there (in nats; it gets no gradient).

        z = (x Wᵀ + b) / τ        log p_n = z_n,label - log Σ_v exp z_nv        H_n = log Σ_v exp z_nv - Σ_v p_nv z_nv

    excluded: ids that have probability 0, because whoever drew the labels never draws them. Were they counted, training
    could hide probability there, where no sample ever finds it.
    Shapes: x (N, D), weight (V, D), bias (V,) or None, labels (N,), τ the temperature -> log_probs and entropies, (N,).
    """
    log_probs, entropies, normalizers = (np.empty(len(x), x.dtype) for _ in range(3))
    for rows, logits in _chunks(x, weight, bias, empty, temperature, excluded):
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
    gradients = _gradients(x, weight, bias, empty)
    for rows, logits in _chunks(x, weight, bias, empty, temperature, excluded):
        dlogits = np.exp(np.subtract(logits, normalizers[rows, None], out=logits), out=logits)
        factors = dlog_probs[rows] * (1 / temperature)
        dlogits *= -factors[:, None]
        dlogits[np.arange(len(dlogits)), labels[rows]] += factors
        _accumulate_chunk(rows, dlogits, x, weight, gradients, empty)
    return gradients


def _chunks(
    x: Array,
    weight: Array,
    bias: Array | None,
    empty: Empty,
    temperature: float = 1.0,
    excluded: Array | None = None,
) -> Iterator[tuple[slice, Array]]:
    """Yield chunks of rows of about equal size, each with its logits, divided by the temperature."""
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


def _gradients(x: Array, weight: Array, bias: Array | None, empty: Empty) -> tuple[Array, Array, Array | None]:
    """Return memory for dx, dweight and dbias, which `_accumulate_chunk` fills."""
    dx, dweight = empty(x.shape, x.dtype), empty(weight.shape, weight.dtype)
    if len(x) == 0:
        dweight[...] = 0
    return dx, dweight, None if bias is None else np.zeros_like(bias)


def _accumulate_chunk(
    rows: slice, dlogits: Array, x: Array, weight: Array, gradients: tuple[Array, Array, Array | None], empty: Empty
) -> None:
    """Add what a chunk contributes to the gradients: dx = dz W, dW = dzᵀ x, db = Σ_n dz_n."""
    dx, dweight, dbias = gradients
    np.matmul(dlogits, weight, out=dx[rows])
    if rows.start == 0:
        np.matmul(dlogits.T, x[rows], out=dweight)
    else:
        dweight += np.matmul(dlogits.T, x[rows], out=empty(weight.shape, x.dtype))
    if dbias is not None:
        dbias += sum_rows(dlogits)

"""From a model's logits to what a search needs of them: normalisers, permitted tokens, the best few continuations."""

import math

import numpy as np

from toolkit.functional.arrays import Array, row_blocks
from toolkit.tokenization.special import EOS, SPECIAL_TOKENS

# The best of so many logits in a row are looked for directly, of more by columns: see `best_continuations`.
_FEW_TOKENS = 512
# The fewest columns. Most time is saved where as many are searched as tokens are looked at in the best of them.
_LEAST_COLUMNS = 256

# While the sums of exponentials stay within these bounds, none has overflowed and no row has vanished, and the usual
# subtraction of the largest logit can be left out.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-30, 1e30


def log_sum_exp(logits: Array) -> Array:
    """log Σ_v exp z_nv, so that log_softmax(z)_nv = z_nv - log_sum_exp(z)_n, for the few v that are needed.

    Shapes: (N, V) -> (N,), in float64 because sequences add these up.
    """
    with np.errstate(over="ignore"):
        totals = _sums_of_exponentials(logits, None)
    if totals.min(initial=1) > _LEAST_TOTAL and totals.max(initial=1) < _LARGEST_TOTAL:
        return np.log(totals)
    largest = logits.max(axis=1, keepdims=True)
    return np.log(_sums_of_exponentials(logits, largest)) + largest[:, 0]


def _sums_of_exponentials(logits: Array, shift: Array | None) -> Array:
    """Σ_v exp(z_nv - shift_n), in float64.  Shapes: (N, V), (N, 1) -> (N,)."""
    totals, ones = np.empty(len(logits)), np.ones(logits.shape[1], logits.dtype)
    scratch = None
    for rows in row_blocks(*logits.shape):
        block = logits[rows]
        scratch = np.empty_like(block) if scratch is None else scratch[: len(block)]
        if shift is not None:
            block = np.subtract(block, shift[rows], out=scratch)
        totals[rows] = np.exp(block, out=scratch) @ ones
    return totals


def forbid_control_tokens(logits: Array, end: int = EOS) -> None:
    """Leave ordinary tokens and the end mark: no padding, begin mark, <unk>, chat marker or spare symbol is written.

    Shapes: (N, V), changed in place. What was taken away is not given to other tokens: log-probabilities stay the
    model's own, computed before.  end: the special id that is the end mark.
    """
    logits[:, :end] = -np.inf
    logits[:, end + 1 : len(SPECIAL_TOKENS)] = -np.inf


def force_end(logits: Array, own: Array, rows: Array, end: int = EOS) -> None:
    """Leave nothing but the end mark, with the model's own logit, in some rows.

    Shapes: logits (N, V), changed in place; own (N, V), which may be the same array; rows (N,) of bool.
    """
    kept = own[rows, end]
    logits[rows] = -np.inf
    logits[rows, end] = kept


def best_continuations(logits: Array, scores: Array, count: int) -> tuple[Array, Array, Array]:
    """The `count` largest sums z_nv + score_n over all beams n and tokens v of each sentence, best first.

    The logits of a row are written as lines of S columns. A column's maximum is one of the sums, so the `count` best
    columns contain the `count` best sums, and only those columns are looked at one by one.

    Shapes: logits (B·W, V), scores (B, W) -> sums, beams and tokens (B, count), filled up with -inf and any tokens
    where W·V is less.
    """
    (batch, width), size = scores.shape, logits.shape[1]
    if size <= _FEW_TOKENS:
        sums = (logits.reshape(batch, width, size) + scores[:, :, None]).reshape(batch, -1)
        best = largest_first(sums, count)
        sums, (beams, tokens) = sums[_row_numbers(best), best], np.divmod(best, size)
    else:
        sums, beams, tokens = _best_in_columns(logits, scores, count)
    if missing := count - sums.shape[1]:
        sums = np.pad(sums, ((0, 0), (0, missing)), constant_values=-np.inf)
        beams, tokens = (np.pad(part, ((0, 0), (0, missing))) for part in (beams, tokens))
    return sums, beams, tokens


def _best_in_columns(logits: Array, scores: Array, count: int) -> tuple[Array, Array, Array]:
    """`best_continuations` of a large vocabulary, without what is missing."""
    (batch, width), size = scores.shape, logits.shape[1]
    span = min(size, max(_LEAST_COLUMNS, 1 << math.isqrt(size * count).bit_length()))
    maxima = _column_maxima(logits, span).reshape(batch, width, span) + scores[:, :, None]
    columns = _largest(maxima.reshape(batch, -1), count)
    beams, columns = np.divmod(columns, span)
    tokens = columns[:, :, None] + span * np.arange(-(-size // span))  # (B, columns, lines)
    rows = np.arange(batch)[:, None] * width + beams
    beyond = tokens >= size
    np.minimum(tokens, size - 1, out=tokens)
    sums = logits[rows[:, :, None], tokens] + scores.reshape(-1)[rows][:, :, None]
    sums[beyond] = -np.inf
    depth, sums, tokens = tokens.shape[2], sums.reshape(batch, -1), tokens.reshape(batch, -1)
    best = largest_first(sums, count)
    numbers = _row_numbers(best)
    return sums[numbers, best], beams[numbers, best // depth], tokens[numbers, best]


def _column_maxima(logits: Array, span: int) -> Array:
    """(N, V) -> (N, span): entry s is the largest of s, s + span, s + 2·span, ..."""
    whole = logits.shape[1] // span * span
    maxima = logits[:, :whole].reshape(len(logits), -1, span).max(axis=1)
    tail = logits[:, whole:]
    head = maxima[:, : tail.shape[1]]
    np.maximum(head, tail, out=head)
    return maxima


def largest_first(values: Array, count: int) -> Array:
    """The indices of the `count` largest entries of each row, in descending order of the entries."""
    best = _largest(values, count)
    numbers = _row_numbers(best)
    return best[numbers, np.argsort(-values[numbers, best], axis=1, kind="stable")]


def _largest(values: Array, count: int) -> Array:
    """The indices of the `count` largest entries of each row, all of them where there are no more; in any order.

    Of many, by columns: the `count` best columns contain the `count` best entries.
    """
    size = values.shape[1]
    if count >= size:
        return np.broadcast_to(np.arange(size), values.shape)
    span = 1 << math.isqrt(size * count).bit_length() - 1
    if size < _FEW_TOKENS or size % span or size < 4 * span:
        return np.argpartition(values, size - count, axis=1)[:, size - count :]
    columns = _largest(values.reshape(len(values), -1, span).max(axis=1), count)
    candidates = (columns[:, :, None] + np.arange(0, size, span)).reshape(len(values), -1)
    numbers = _row_numbers(candidates)
    return candidates[numbers, _largest(values[numbers, candidates], count)]


def _row_numbers(chosen: Array) -> Array:
    """(B, 1): with `chosen` (B, C), the index of some entries of every row."""
    return np.arange(len(chosen))[:, None]

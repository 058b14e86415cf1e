"""Exercises on attention: the mask, the scores, their gradient, and many heads."""

import numpy as np

from toolkit import plain
from toolkit.exercises.exercise import Arguments, Exercise, Mistake

T, D, H = 6, 8, 2
K = D // H
SIZES = {"T": T, "D": D, "H": H, "K": K}


def _mask(seen, shown=0.0, hidden=-np.inf):
    """Make a wrong mask: seen(row, column), and what stands there and elsewhere."""
    return lambda length: np.where(seen(*np.ogrid[:length, :length]), shown, hidden)


def mask_that_is_multiplied_out(length):
    with np.errstate(invalid="ignore"):
        return np.triu(np.ones((length, length)), 1) * -np.inf


CAUSAL_MASK = Exercise(
    "causal_mask", "Nobody sees what comes after", plain.causal, lambda rng: (int(rng.integers(4, 9)),), ("mask",),
    (
        "Row t is the query of position t, column s the key of position s: where s > t there has to be -inf.",
        "exp(-inf) is 0, and adding 0 changes nothing. Mind that 0 · -inf is nan, so do not multiply by -inf.",
        "np.triu(np.full((length, length), -np.inf), 1): what lies above the diagonal, zeros elsewhere.",
    ),
    "toolkit/plain.py: causal; toolkit/functional/attention.py: causal_mask",
    (
        Mistake(
            _mask(lambda t, s: s >= t),
            "rows and columns are exchanged: in yours every position sees itself and what comes after, it must be what "
            "came before",
        ),
        Mistake(
            _mask(lambda t, s: s > t),
            "it is upside down: yours hides what came before and the position itself, it must hide what comes after",
        ),
        Mistake(
            _mask(lambda t, s: s < t),
            "the diagonal is hidden too: a position sees itself, and the first would see nothing at all (0 / 0 in "
            "softmax)",
        ),
        Mistake(
            _mask(lambda t, s: s <= t + 1),
            "every position sees the next one too, which it is to predict: the loss would fall to 0 and nothing be "
            "learnt",
        ),
        Mistake(
            _mask(lambda t, s: s <= t, 1.0, 0.0),
            "1 and 0 are to multiply with; this mask is added, and a score of 0 is not hidden, since exp(0) is 1",
        ),
        Mistake(
            _mask(lambda t, s: s <= t, 0.0, -1e9),
            "-1e9 stands where -inf is asked for: it hides only as long as the scores are small beside it",
        ),
        Mistake(mask_that_is_multiplied_out, "0 · -inf is nan: fill with -inf first, then set the lower part to 0"),
    ),
)  # fmt: skip


# attention


def heads_and_mask(rng: np.random.Generator) -> Arguments:
    """Query, key and value of one head, and the causal mask."""
    return (*rng.standard_normal((3, T, K)), plain.causal(T))


def _attention(weights):
    """Make attention of weights(products, mask)."""
    return lambda query, key, value, mask: weights(query @ key.T, mask) @ value


ATTENTION = Exercise(
    "attention", "Every position asks all that it sees",
    lambda query, key, value, mask: plain.attention(query, key, value, mask)[0], heads_and_mask, ("context",),
    (
        "The scores are the products of each query with each key, (T, S); their softmax weighs the rows of value.",
        "A sum of K random products has a spread of √K, which would leave softmax with one weight near 1.",
        "softmax(query keyᵀ / √K + mask) value: the mask before softmax, so that every row still sums to 1.",
    ),
    "toolkit/plain.py: attention; toolkit/functional/attention.py",
    (
        Mistake(
            _attention(lambda products, mask: plain.softmax(products + mask)),
            "the scores are not divided by √K: with wide heads softmax would have one weight near 1 and no gradient",
        ),
        Mistake(
            _attention(lambda products, mask: plain.softmax(products / K + mask)),
            "the scores are divided by K, it must be its root: that is their spread",
        ),
        Mistake(
            _attention(lambda products, mask: plain.softmax(products / np.sqrt(K))),
            "the mask is left out: the positions see what comes after them",
        ),
        Mistake(
            _attention(lambda products, mask: plain.softmax(products / np.sqrt(K)) * np.exp(mask)),
            "the mask comes after softmax: the weights of a row no longer sum to 1, since the hidden ones took their "
            "share",
        ),
        Mistake(
            _attention(lambda products, mask: plain.softmax(products / np.sqrt(K) * np.exp(mask))),
            "the hidden scores are 0, which is not hidden: exp(0) is 1; it takes -inf",
        ),
        Mistake(
            _attention(lambda products, mask: plain.softmax(products / np.sqrt(len(products)) + mask)),
            "the scores are divided by √T: it is the width K of a query that makes products large, not their number",
        ),
        Mistake(
            _attention(lambda products, mask: plain.softmax((products / np.sqrt(K) + mask).T).T),
            "softmax goes down the columns: the weights of each query, a row, have to sum to 1 over the keys (axis=-1)",
        ),
    ),
    SIZES,
)  # fmt: skip


# attention's gradient


def _dscores(p, dp, scale):
    return p * (dp - (p * dp).sum(axis=-1, keepdims=True)) * scale


def _attention_gradient(
    dscores=_dscores, last=lambda ds, p, dcontext, query, key: (ds @ key, ds.T @ query, p.T @ dcontext)
):
    """Make a wrong attention: dscores(p, dp, scale), and what is made of them."""

    def attention_gradient(query, key, value, mask):
        scale = 1 / np.sqrt(query.shape[1])
        p = plain.softmax(query @ key.T * scale + mask)
        return p @ value, lambda dcontext: last(dscores(p, dcontext @ value.T, scale), p, dcontext, query, key)

    return attention_gradient


ATTENTION_GRADIENT = Exercise(
    "attention_gradient", "The gradient of attention", plain.attention, heads_and_mask,
    ("context", "dquery", "dkey", "dvalue"),
    (
        "context = weights value is a product of matrices as in linear: dweights = dcontext valueᵀ, and dvalue "
        "likewise.",
        "Then through softmax, as in softmax_gradient, row by row; then through the product of query and key with 1 / "
        "√K.",
        "dvalue = weightsᵀ dcontext; dscores = weights · (dweights - Σ weights · dweights) / √K, the sum over the row; "
        "dquery = dscores key; dkey = dscoresᵀ query.",
    ),
    "toolkit/plain.py: attention; toolkit/functional/attention.py: attention_backward",
    (
        Mistake(
            _attention_gradient(lambda p, dp, scale: p * dp * scale),
            "softmax is taken for a function of each score alone: a higher score lowers all other weights of its row, "
            "so Σ weights · dweights is to be taken away first",
        ),
        Mistake(
            _attention_gradient(lambda p, dp, scale: p * (1 - p) * dp * scale),
            "only the diagonal of softmax's gradient is there, p (1 - p): the other weights of the row change too",
        ),
        Mistake(
            _attention_gradient(lambda p, dp, scale: _dscores(p, dp, 1.0)),
            "the scale is missing: the products were divided by √K, and so is their gradient",
        ),
        Mistake(
            _attention_gradient(lambda p, dp, scale: _dscores(p, dp, scale**2)),
            "dquery and dkey are divided by √K twice: the forward divides once",
        ),
        Mistake(
            _attention_gradient(last=lambda ds, p, dcontext, query, key: (ds @ key, ds @ query, p.T @ dcontext)),
            "dkey needs dscores turned: a key adds up what comes from all queries, a column of dscores",
        ),
        Mistake(
            _attention_gradient(last=lambda ds, p, dcontext, query, key: (ds @ key, ds.T @ query, p @ dcontext)),
            "dvalue needs the weights turned: a value adds up what comes from all queries that looked at it",
        ),
    ),
    SIZES, has_back=True, points=2,
)  # fmt: skip


# heads


def _split(x, heads):
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def _joined(contexts):
    return np.hstack(list(contexts))


SPLIT_HEADS = Exercise(
    "split_heads", "From one wide row to several heads", lambda x, heads: np.stack(np.split(x, heads, axis=1)),
    lambda rng: (rng.standard_normal((T, D)), H), ("by_head",),
    (
        "Head 0 has the first K columns of every row, head 1 the next K, and so on: K = D / H.",
        "reshape keeps the order of the numbers in memory. It can cut the columns of a row in pieces, but it cannot "
        "bring the heads to the front: that takes transpose.",
        "x.reshape(T, heads, K).transpose(1, 0, 2).",
    ),
    "toolkit/plain.py: multi_head_attention, np.split; toolkit/nn/attention.py",
    (
        Mistake(
            lambda x, heads: x.reshape(heads, len(x), -1),
            "reshape alone mixes the positions: head 0 gets the first rows whole, it must get some columns of every "
            "row (the shape is right, which is why nobody notices)",
        ),
        Mistake(
            lambda x, heads: x.reshape(len(x), heads, -1),
            "the heads are cut but not brought to the front: yours is (T, H, K), it must be (H, T, K) (transpose)",
        ),
        Mistake(
            lambda x, heads: x.reshape(len(x), -1, heads).transpose(2, 0, 1),
            "every H-th column goes to a head in yours: a head has K columns that stand next to each other",
        ),
        Mistake(
            lambda x, heads: x.reshape(len(x), heads, -1).transpose(1, 2, 0),
            "positions and columns of a head are exchanged: yours is (H, K, T), it must be (H, T, K)",
        ),
        Mistake(
            lambda x, heads: np.stack(np.array_split(x[: len(x) // heads * heads], heads)),
            "you split the rows, the positions; it is the columns that are divided among the heads (axis=1)",
        ),
    ),
    SIZES,
)  # fmt: skip


# multi-head attention


def rows_and_weights(rng: np.random.Generator) -> Arguments:
    """Rows, the causal mask, the number of heads, and four weights."""
    return rng.standard_normal((T, D)), plain.causal(T), H, *rng.standard_normal((4, D, D)) / np.sqrt(D) * 1.5


def multi_head(x, mask, heads, query, key, value, output):
    maps = [{"weight": weight} for weight in (query, key, value, output)]
    return plain.multi_head_attention(x, None, mask, heads, *maps)[0]


def _multi_head(split=_split, joined=_joined, sharper=1.0, mapped=True):
    """Make a wrong layer: how heads are split and joined, a factor of the queries, and if output is applied."""

    def multi_head(x, mask, heads, query, key, value, output):
        by_head = zip(*(split(x @ weight, heads) for weight in (sharper * query, key, value)), strict=True)
        context = joined(np.stack([plain.attention(*head, mask)[0] for head in by_head]))
        return context @ output if mapped else context

    return multi_head


MULTI_HEAD = Exercise(
    "multi_head", "Several heads, each with a view of its own", multi_head, rows_and_weights, ("y",),
    (
        "First the three maps of all of x, (T, D); then split each into heads; then attention head by head.",
        "The contexts of the heads, (T, K) each, stand side by side again, (T, D), and go through the output map.",
        "np.hstack([attention(q, k, v, mask) for q, k, v in zip(split_heads(x @ query, heads), …)]) @ output.",
    ),
    "toolkit/plain.py: multi_head_attention; toolkit/nn/attention.py",
    (
        Mistake(
            _multi_head(split=lambda x, heads: x[None]),
            "there is one head, as wide as the model: split queries, keys and values before attention",
        ),
        Mistake(
            _multi_head(sharper=H**-0.5),
            "the scores are divided by √D: the product of a query and a key has K terms, K = D / H, so it is √K",
        ),
        Mistake(
            _multi_head(joined=lambda contexts: contexts.reshape(T, D)),
            "the heads are joined by reshape alone, which mixes the positions: turn (H, T, K) to (T, H, K) first, or "
            "np.hstack them",
        ),
        Mistake(
            _multi_head(joined=lambda contexts: contexts.transpose(1, 2, 0).reshape(T, D)),
            "the columns of the heads alternate in yours: each head's K columns have to stand next to each other, as "
            "they were split",
        ),
        Mistake(_multi_head(mapped=False), "the output map is missing: it is what brings the heads together"),
        Mistake(
            lambda x, mask, *rest: multi_head(x, 0.0, *rest),
            "the mask is left out: the positions see what comes after them",
        ),
    ),
    SIZES, points=2,
)  # fmt: skip


# rotary positions

ATTENDING = (CAUSAL_MASK, ATTENTION, ATTENTION_GRADIENT, SPLIT_HEADS, MULTI_HEAD)

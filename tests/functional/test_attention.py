import math

import numpy as np
import pytest

from toolkit.functional import attention as attention_module
from toolkit.functional.attention import attention, attention_backward, softmax_over_keys
from toolkit.proof.cases import causal, ragged


def reference(query, key, value, visible=None, mask=None, scale=1.0):
    """Softmax over the visible keys, one query at a time."""
    batch, queries, heads, width = query.shape
    keys = key.shape[1]
    visible = np.broadcast_to(True if visible is None else visible, (batch, heads, keys, queries))
    mask = np.ones((batch, heads, keys, queries)) if mask is None else mask
    context = np.zeros(query.shape)
    for b, t, h in np.ndindex(batch, queries, heads):
        seen = np.flatnonzero(visible[b, h, :, t])
        scores = key[b, seen, h] @ query[b, t, h] / math.sqrt(width)
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        context[b, t, h] = (shares * mask[b, h, seen, t] * scale) @ value[b, seen, h]
    return context


def stacks(rng: np.random.Generator, queries: int, keys: int) -> list[np.ndarray]:
    return [rng.standard_normal((3, length, 2, 4)) for length in (queries, keys, keys)]


@pytest.mark.parametrize("spread", [1, 50], ids=["small scores", "large scores"])
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "visibility"), [(4, 4, None), (4, 4, causal), (2, 5, causal), (3, 5, ragged), (1, 6, None)]
)
def test_against_a_softmax_for_every_query(queries, keys, visibility, dropped: bool, spread: float) -> None:
    rng = np.random.default_rng(3)
    query, key, value = stacks(rng, queries, keys)
    query *= spread
    visible = visibility(keys, queries) if visibility else None
    mask, scale = (rng.random((3, 2, keys, queries)) < 0.7, 1.3) if dropped else (None, 1.0)
    scores = np.einsum("bthk,bshk->bhst", query, key) / 2
    assert (np.abs(scores).max() > attention_module._SAFE_SCORE) == (spread > 1)
    context = attention(query, key, value, visible, mask, scale)[0]
    np.testing.assert_allclose(context, reference(query, key, value, visible, mask, scale), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_shared_keys_are_keys_repeated(groups: int) -> None:
    """Query heads 0 to H/G - 1 read the first head of keys, and so on: forth and back."""
    rng, heads, dropped = np.random.default_rng(5), 6, (np.random.default_rng(6).random((3, 6, 5, 4)) < 0.7, 1.3)
    query, dcontext = rng.standard_normal((2, 3, 4, heads, 2))
    key, value = rng.standard_normal((2, 3, 5, groups, 2))
    repeated = [np.repeat(each, heads // groups, axis=2) for each in (key, value)]
    context, saved = attention(query, key, value, causal(5, 4), *dropped)
    np.testing.assert_allclose(context, reference(query, *repeated, causal(5, 4), *dropped), rtol=1e-10, atol=1e-13)
    dquery, *gradients = attention_backward(dcontext, saved)
    expected = attention_backward(dcontext, attention(query, *repeated, causal(5, 4), *dropped)[1])
    np.testing.assert_allclose(dquery, expected[0], rtol=1e-9, atol=1e-12)
    for found, of_each in zip(gradients, expected[1:], strict=True):
        summed = of_each.reshape(3, 5, groups, heads // groups, 2).sum(axis=3)
        np.testing.assert_allclose(found, summed, rtol=1e-9, atol=1e-12)


def test_both_ways_to_a_softmax_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.random.default_rng(0).standard_normal((3, 2, 5, 4)) * 5
    direct, shifted = scores.copy(), scores.copy()
    softmax_over_keys(direct, ragged(5, 4))
    monkeypatch.setattr(attention_module, "_SAFE_SCORE", 0.0)
    softmax_over_keys(shifted, ragged(5, 4))
    np.testing.assert_allclose(direct, shifted, rtol=1e-13)


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4])
def test_probabilities_sum_to_one_and_are_zero_where_nothing_is_seen(size: float) -> None:
    rng = np.random.default_rng(1)
    for visible in (causal(5, 5), ragged(5, 5)):
        scores = (rng.standard_normal((3, 2, 5, 5)) * size).astype(np.float32)
        hidden = ~np.broadcast_to(visible, scores.shape)
        scores[hidden] += 10 * size  # the invisible keys fit best of all
        softmax_over_keys(scores, visible)
        assert (scores[hidden] == 0).all()
        np.testing.assert_allclose(scores.sum(axis=-2), 1, rtol=1e-5)


@pytest.mark.parametrize("size", [1.0, 100.0])
def test_what_is_invisible_has_no_influence_and_gets_no_gradient(size: float) -> None:
    rng = np.random.default_rng(2)
    query, key, value = stacks(rng, 3, 5)
    visible = ragged(5, 3)
    hidden = ~visible[:, 0, :, 0]
    context, saved = attention(query * size, key, value, visible)
    changed_key, changed_value = key.copy(), value.copy()
    changed_key[hidden] *= -3
    changed_value[hidden] += 7
    other = attention(query * size, changed_key, changed_value, visible)[0]
    np.testing.assert_allclose(context, other, rtol=1e-12)
    _, dkey, dvalue = attention_backward(rng.standard_normal(context.shape), saved)
    assert (dkey[hidden] == 0).all()
    assert (dvalue[hidden] == 0).all()
    assert (dvalue[~hidden] != 0).all()


def test_results_go_where_they_are_told_to() -> None:
    rng = np.random.default_rng(4)
    arguments = stacks(rng, 3, 5)
    out = np.full(arguments[0].shape, np.nan)
    context, saved = attention(*arguments, out=out)
    assert context is out
    gradients = tuple(np.full(argument.shape, np.nan) for argument in arguments)
    written = attention_backward(context, saved, gradients)
    plain = attention_backward(context, attention(*arguments)[1])
    for one, other, place in zip(written, plain, gradients, strict=True):
        assert one is place
        np.testing.assert_array_equal(one, other)

import numpy as np
import pytest

from toolkit.functional import attention as module
from toolkit.functional.attention import (
    attention,
    attention_backward,
    causal_attention,
    causal_attention_backward,
    causal_mask,
    causal_probabilities,
)


def test_the_mask_shows_a_query_what_came_before_it_and_itself() -> None:
    mask = causal_mask(4, 4)
    assert mask.shape == (1, 1, 4, 4)
    assert mask[0, 0].T.tolist() == np.tri(4).tolist()  # [key, query]
    np.testing.assert_array_equal(causal_mask(2, 5), causal_mask(5, 5)[..., 3:])


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("length", [1, 2, 6, 7, 12])
def test_blocks_equal_the_masked_square(
    monkeypatch: pytest.MonkeyPatch, length: int, dropped: bool, groups: int
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 3)
    rng = np.random.default_rng(length)
    query, dcontext = rng.standard_normal((2, 2, length, 4, 3))
    key, value = rng.standard_normal((2, 2, length, groups, 3))
    mask, scale = (rng.random((2, 4, length, length)) < 0.7, 1.4) if dropped else (None, 1.0)
    whole, saved_whole = attention(query, key, value, causal_mask(length, length), mask, scale)
    out = np.full(query.shape, np.nan)
    context, saved = causal_attention(query, key, value, mask, scale, out)
    assert context is out
    assert len(saved) == max(1, length // 3)
    np.testing.assert_allclose(context, whole, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(causal_probabilities(saved), saved_whole[3], rtol=1e-12)
    places = tuple(np.full(x.shape, np.nan) for x in (query, key, value))
    gradients = causal_attention_backward(dcontext, saved, places)
    for found, expected, place in zip(gradients, attention_backward(dcontext, saved_whole), places, strict=True):
        assert found is place
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)

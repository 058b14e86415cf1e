import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.preference.advantages import advantages_of, token_rewards, whitened

numbers = st.floats(-10, 10)
episodes = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12)
shares = st.floats(0, 1)


@given(episodes, shares, shares)
def test_against_the_definition(episode: list, discount: float, decay: float) -> None:
    """A_t = Σ_k (γλ)^k δ_t+k, summed anew for every t."""
    rewards, values = (np.array(column) for column in zip(*episode, strict=True))
    length = len(rewards)
    after = [*values[1:], 0.0]
    errors = [rewards[t] + discount * after[t] - values[t] for t in range(length)]
    expected = [sum((discount * decay) ** (k - t) * errors[k] for k in range(t, length)) for t in range(length)]
    np.testing.assert_allclose(advantages_of(rewards, values, discount, decay), expected, rtol=1e-9, atol=1e-9)


@given(episodes)
def test_with_decay_one_an_advantage_is_what_came_less_what_was_expected(episode: list) -> None:
    rewards, values = (np.array(column) for column in zip(*episode, strict=True))
    came = np.cumsum(rewards[::-1])[::-1]
    np.testing.assert_allclose(advantages_of(rewards, values, 1.0, 1.0), came - values, rtol=1e-9, atol=1e-9)


def test_types_stay() -> None:
    assert advantages_of(np.ones(3, np.float32), np.ones(3, np.float32)).dtype == np.float32


def test_a_token_pays_for_leaving_the_reference_and_the_last_one_has_the_score() -> None:
    rewards = token_rewards(np.array([-1.0, -2.0, -3.0]), np.array([-1.5, -2.0, -1.0]), 4.0, 0.1)
    np.testing.assert_allclose(rewards, [-0.05, 0, 4.2])


@given(st.lists(st.lists(numbers, min_size=1, max_size=5), min_size=1, max_size=6))
def test_whitening_is_over_all_parts_together(parts: list[list[float]]) -> None:
    arrays = [np.array(part) for part in parts]
    white = whitened(arrays)
    assert [len(part) for part in white] == [len(part) for part in parts]
    before, after = np.concatenate(arrays), np.concatenate(white)
    if before.std() > 1e-3:
        assert after.mean() == pytest.approx(0, abs=1e-9)
        assert after.std() == pytest.approx(1, abs=1e-4)
        np.testing.assert_allclose(after * before.std(), before - before.mean(), rtol=1e-4, atol=1e-9)
    else:
        assert np.isfinite(after).all()

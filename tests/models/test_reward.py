"""Reward models and actor-critics: made of the parts of language models, and told apart from them on the disk."""

from pathlib import Path

import numpy as np
import pytest

from tests.checks import DROPOUT, random_model, small_gpt_config
from toolkit.errors import ModelError
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.reward import (
    ActorCritic,
    ActorCriticConfig,
    RewardConfig,
    RewardModel,
    copy_values,
    settings_like,
)
from toolkit.models.storage import load_model, new_model, save_model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

CONFIG = small_gpt_config(**DROPOUT, num_key_value_heads=2, norm="rms")
KINDS = {RewardConfig: RewardModel, ActorCriticConfig: ActorCritic, GPTConfig: GPT}


def filled(kind: type[GPTConfig], dtype: type = np.float64):
    model = new_model(settings_like(kind, CONFIG))
    model.allocate(dtype)
    model.vector[:] = np.random.default_rng(1).standard_normal(len(model.vector))
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_saved_and_loaded_as_itself(kind: type[GPTConfig], tmp_path: Path) -> None:
    model = filled(kind, np.float32)
    assert type(model) is KINDS[kind]
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert type(loaded) is KINDS[kind]
    assert loaded.config == model.config
    for name, value in loaded.arrays().items():
        np.testing.assert_array_equal(value, model.arrays()[name])


def test_the_reward_of_a_text_is_the_value_of_its_last_token_in_any_batch() -> None:
    model, rng = filled(RewardConfig), np.random.default_rng(2)
    lengths = np.array([5, 2, 8, 2, 1])
    ids, rows = rng.integers(0, CONFIG.vocab_size, lengths.sum()), Rows(lengths)
    last = rows.starts + lengths - 1
    together = model.values(ids, rows, last, Tape())
    assert together.shape == (5,)
    every = model.values(ids, rows, np.arange(len(ids)), Tape())
    np.testing.assert_allclose(every[last], together, rtol=1e-12)
    for start, length, value in zip(rows.starts, lengths, together, strict=True):
        alone = Rows(np.array([length]))
        found = model.values(ids[start : start + length], alone, np.array([length - 1]), Tape())
        np.testing.assert_allclose(found, value, rtol=1e-10)


def test_a_value_sees_what_comes_before_it_and_nothing_after() -> None:
    model, rng = filled(RewardConfig), np.random.default_rng(3)
    ids, rows = rng.integers(0, CONFIG.vocab_size, 8), Rows(np.array([8]))
    values = model.values(ids, rows, np.arange(8), Tape())
    ids[4] = (ids[4] + 1) % CONFIG.vocab_size
    changed = model.values(ids, rows, np.arange(8), Tape())
    np.testing.assert_allclose(changed[:4], values[:4], rtol=1e-12)
    assert (np.abs(changed[4:] - values[4:]) > 1e-6).all()


def test_a_reward_model_begins_with_the_trunk_and_no_opinion() -> None:
    language_model = random_model(CONFIG, np.random.default_rng(4))
    model = filled(RewardConfig)
    model.begin_from(language_model)
    given = language_model.arrays()
    for name, value in model.arrays().items():
        np.testing.assert_array_equal(value, given[name] if name.startswith("trunk.") else 0)
    assert {name for name in model.arrays() if not name.startswith("trunk.")} == {"head.weight", "head.bias"}
    rows = Rows(np.array([3]))
    assert not model.values(np.array([1, 2, 3]), rows, np.arange(3), Tape()).any()


def test_an_actor_critic_begins_as_both_and_gives_its_policy_back() -> None:
    language_model, reward_model = random_model(CONFIG, np.random.default_rng(4)), filled(RewardConfig)
    model = filled(ActorCriticConfig)
    model.begin_from(language_model, reward_model)
    expected = {f"policy.{name}": value for name, value in language_model.arrays().items()}
    expected |= {f"critic.{name}": value for name, value in reward_model.arrays().items()}
    assert model.arrays().keys() == expected.keys()
    for name, value in model.arrays().items():
        np.testing.assert_array_equal(value, expected[name])
    back = model.language_model()
    assert back.config == CONFIG
    np.testing.assert_array_equal(back.vector, language_model.vector)
    model.vector[:] = 0
    assert back.vector.any()


def test_models_of_other_shapes_are_refused() -> None:
    wider = GPT(small_gpt_config(d_model=32))
    wider.allocate()
    with pytest.raises(ModelError, match="different shapes"):
        filled(RewardConfig).begin_from(wider)
    with pytest.raises(ModelError, match="different shapes"):
        copy_values(filled(RewardConfig), filled(GPTConfig))


def test_settings_of_another_kind_with_and_without_dropout() -> None:
    same = settings_like(ActorCriticConfig, settings_like(RewardConfig, CONFIG))
    assert settings_like(GPTConfig, same) == CONFIG
    assert settings_like(GPTConfig, CONFIG, dropout=False) == small_gpt_config(num_key_value_heads=2, norm="rms")

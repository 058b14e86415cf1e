"""Replies are samples of the distribution that is trained, and a judge's scale is that of the reference."""

import numpy as np
import pytest

from tests.preference.small import CONFIG, random_gpt, random_reward_model, random_texts, start_policy
from toolkit.errors import ConfigError, DataError
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.preference.examples import reply_batch
from toolkit.preference.policy import never_written, reply_log_probs
from toolkit.preference.ppo import PPOConfig, PPOTask
from toolkit.preference.rollout import write_replies
from toolkit.preference.score import ModelScore, normalized_score
from toolkit.tokenization.special import BOS, END, EOS

PROMPTS, REPLIES = random_texts()


@pytest.mark.parametrize("end", [END, EOS])
def test_replies_end_with_their_marker_or_at_the_limit(end: int) -> None:
    model = start_policy()
    prompts = [np.array([BOS, 16 + number % 8]) for number in range(100)]
    replies = write_replies(model, prompts, end, max_new_tokens=4)
    assert {reply.ended for reply in replies} == {True, False}
    for reply in replies:
        assert reply.ended == (reply.ids[-1] == end)
        assert (reply.ids[:-1] >= 16).all()
        assert len(reply.ids) == 4 or (reply.ended and len(reply.ids) < 4)


def test_a_prompt_has_its_own_draw_whoever_replies_to_the_others() -> None:
    model = random_gpt()
    whole = write_replies(model, PROMPTS, END, max_new_tokens=5, seed=3)
    parts = [
        *write_replies(model, PROMPTS[:2], END, max_new_tokens=5, seed=3),
        *write_replies(model, PROMPTS[2:], END, max_new_tokens=5, seed=3, first=2),
    ]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
    others = write_replies(model, PROMPTS, END, max_new_tokens=5, seed=4)
    assert any(one.ids.tolist() != other.ids.tolist() for one, other in zip(whole, others, strict=True))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_replies_come_from_the_distribution_that_is_scored(temperature: float) -> None:
    """First tokens of many replies to one prompt, as often as their probability says: a chi-squared statistic."""
    model = random_gpt()
    prompt = PROMPTS[0]
    count = 2000
    replies = write_replies(model, [prompt] * count, END, temperature=temperature, max_new_tokens=1)
    possible = np.setdiff1d(np.arange(CONFIG.vocab_size), never_written(END))
    batch = reply_batch([prompt] * len(possible), [np.array([token]) for token in possible])
    log_probs, entropies = reply_log_probs(model, batch, Tape(), temperature, never_written(END))
    probabilities = np.exp(log_probs)
    assert probabilities.sum() == pytest.approx(1, rel=1e-12)
    assert entropies[0] == pytest.approx(-(probabilities * log_probs).sum())
    seen = np.array([sum(reply.ids[0] == token for reply in replies) for token in possible])
    assert seen.sum() == count
    expected = probabilities * count
    statistic = ((seen - expected) ** 2 / expected).sum()
    freedom = len(possible) - 1
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


def test_a_normalized_score_has_mean_0_and_deviation_1_on_the_reference() -> None:
    reference, model = random_gpt(), random_reward_model()
    config = PPOConfig(max_new_tokens=6)
    prompts = PROMPTS * 20
    score = normalized_score(model, reference, prompts, END, config, seed=2)
    rng = np.random.default_rng(2)
    asked = [prompts[number] for number in rng.choice(len(prompts), len(prompts), replace=False)]
    replies = write_replies(reference, asked, END, max_new_tokens=6, seed=2)
    both = [(prompt, reply.ids) for prompt, reply in zip(asked, replies, strict=True) if reply.ended]
    assert 5 < len(both) < len(asked)
    values = score(*zip(*both, strict=True), Pool())
    assert values.mean() == pytest.approx(0, abs=1e-9)
    assert values.std() == pytest.approx(1, rel=1e-9)
    critic = ModelScore(score.critic())
    np.testing.assert_allclose(critic(PROMPTS, REPLIES, Pool()), score(PROMPTS, REPLIES, Pool()), rtol=1e-9)


def test_a_reference_that_never_ends_has_no_scale() -> None:
    reference = random_gpt(output_bias=True)
    reference.output_bias.data[END] = -1e4
    with pytest.raises(DataError, match=r"^no reply of the model ends by itself: "):
        normalized_score(random_reward_model(), reference, PROMPTS, END, PPOConfig(max_new_tokens=4))


@pytest.mark.parametrize(
    ("prompts", "valid", "told"),
    [
        ([], PROMPTS, "there are no train prompts"),
        (PROMPTS, [], "there are no valid prompts"),
        ([[20, 21]], PROMPTS, "prompt 1 does not begin with the begin mark"),
        ([PROMPTS[0], []], PROMPTS, "prompt 2 does not begin with the begin mark"),
        (PROMPTS, [[BOS, 99]], "prompt 1 has ids outside the model's vocabulary of 30"),
        (
            [[BOS] * 12],
            PROMPTS,
            "a train prompt has 12 tokens, which leaves less room than 5 tokens in a context of 16",
        ),
    ],
)
def test_prompts_that_cannot_be_replied_to(prompts: list, valid: list, told: str) -> None:
    with pytest.raises(DataError, match=f"^{told}"):
        PPOTask(prompts, valid, END, random_gpt(), lambda *_: None, PPOConfig(max_new_tokens=5))


@pytest.mark.parametrize(
    "settings",
    [
        {"prompts": 0}, {"passes": 0}, {"minibatches": 0}, {"max_new_tokens": 0}, {"clip": 0.0}, {"value_clip": -0.1},
        {"temperature": 0.0}, {"beta": -0.1}, {"value_coefficient": -1.0}, {"discount": 1.1}, {"decay": -0.1},
        {"unfinished": float("nan")}, {"beta": float("inf")},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_named(settings: dict) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(ConfigError, match=f"^{name} is {value}: it must"):
        PPOConfig(**settings)


def test_more_minibatches_than_prompts() -> None:
    with pytest.raises(ConfigError, match="3 prompts cannot be divided into 4 minibatches"):
        PPOConfig(prompts=3, minibatches=4)

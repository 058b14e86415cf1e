"""The loss of PPO through whole models, in float64, and its advantages."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.preference.small import gradient_of, random_actor_critic, random_episodes, random_gpt, random_texts
from toolkit.models.gpt import GPTBatch
from toolkit.models.reward import ActorCritic
from toolkit.nn.tape import Tape
from toolkit.preference.ppo import PPOConfig, PPOTask, Rollout, advantages_of, normalised, token_rewards
from toolkit.preference.replies import never_written, reply_batch, reply_log_probs
from toolkit.proof import central_difference
from toolkit.tokenization.special import END


def task_of(reference, **settings) -> PPOTask:
    prompts, _ = random_texts()
    return PPOTask(prompts, prompts, END, reference, lambda *_: None, PPOConfig(max_new_tokens=5, **settings))


def rollouts_of(model: ActorCritic, task: PPOTask) -> list[Rollout]:
    reference = task.reference
    return task.rollouts(random_episodes(model, reference, task.config.temperature))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_before_the_first_update_nothing_is_clipped_and_nobody_has_moved(temperature: float) -> None:
    policy = random_gpt()
    model, task = random_actor_critic(policy), task_of(policy, temperature=temperature)
    episodes = random_episodes(model, policy, temperature)
    for episode in episodes:
        np.testing.assert_array_equal(episode.log_probs, episode.reference)
        assert episode.divergence == 0
    share = task.rollouts(episodes)
    sums = task.loss(model, share, Tape())
    tokens = sum(len(each.reply) for each in share)
    assert sums.tokens == tokens
    assert sums.clip_fraction == 0
    assert sums.approx_kl == pytest.approx(0, abs=1e-12)
    assert sums.policy_loss == pytest.approx(0, abs=1e-9)  # -Σ A, and A is normalised
    assert sums.value_loss == pytest.approx(sum(((e.values - e.returns) ** 2).sum() / 2 for e in share))
    assert sums.negative_log_likelihood == pytest.approx(-sum(each.log_probs.sum() for each in share))
    batch = reply_batch([each.prompt for each in share], [each.reply for each in share])
    again, _ = reply_log_probs(model.policy, batch, Tape(), temperature, never_written(END))
    np.testing.assert_allclose(np.exp(again - np.concatenate([each.log_probs for each in share])), 1, rtol=1e-13)


def test_the_first_gradient_is_that_of_reinforce() -> None:
    """-Σ A ∇log π, every token by itself through the cross-entropy of the language model."""
    policy = random_gpt(output_bias=True, bias=True)
    policy.output.bias.data[never_written(END)] = -1e4  # the cross-entropy is over all tokens
    model, task = random_actor_critic(policy), task_of(policy, vf_coef=0.0)
    share = rollouts_of(model, task)
    found = gradient_of(model, lambda tape: task.loss(model, share, tape))
    batch = reply_batch([each.prompt for each in share], [each.reply for each in share])
    advantages = np.concatenate([each.advantages for each in share])
    expected = np.zeros_like(model.vector)
    for row, advantage in zip(batch.scored, advantages, strict=True):
        tape = Tape(model.views(expected))
        model.policy.loss(GPTBatch(batch.inputs, batch.labels, batch.rows, np.array([row])), tape)
        model.policy.backward(tape, float(advantage))
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_gradients_are_slopes_after_the_policy_has_moved(temperature: float) -> None:
    """Of policy and critic, each parameter by itself, with ratios on both sides of the clip."""
    model = random_actor_critic(random_gpt())
    task = task_of(random_gpt(3), temperature=temperature, vf_coef=0.3, clip=0.1, value_clip=0.2)
    share = rollouts_of(model, task)
    rng = np.random.default_rng(4)
    model.vector += 0.01 * rng.standard_normal(model.vector.shape)
    sums = task.loss(model, share, Tape())
    assert 0 < sums.clip_fraction < sums.tokens
    assert sums.approx_kl > 0
    assert sums.loss == pytest.approx(sums.policy_loss + 0.3 * sums.value_loss)
    vector = gradient_of(model, lambda tape: task.loss(model, share, tape))
    gradients = model.views(vector)
    for name, parameter in model.parameters().items():
        direction = rng.standard_normal(parameter.shape)
        difference = central_difference(lambda: task.loss(model, share, Tape()).loss, parameter.data, direction, 1e-7)
        gradient = float(np.vdot(gradients[parameter], direction))
        assert math.isclose(gradient, difference, rel_tol=1e-5, abs_tol=1e-5), f"{name}: {gradient} {difference}"


def test_workers_share_the_sums() -> None:
    policy = random_gpt()
    model, task = random_actor_critic(policy), task_of(policy)
    share = rollouts_of(model, task)
    whole = task.loss(model, share, Tape())
    parts = task.split(share, 2)
    assert sorted(map(len, parts)) == [2, 3]
    sums = [task.loss(model, part, Tape()) for part in parts]
    np.testing.assert_allclose(np.sum(sums, axis=0), whole, rtol=1e-9, atol=1e-9)
    empty = task.split(share[:1], 2)[1]
    assert not any(task.loss(model, empty, Tape()))
    assert type(task.loss(model, empty, Tape())) is type(whole)


def test_a_reply_without_its_end_has_the_score_of_the_unfinished() -> None:
    policy = random_gpt()
    episodes = random_episodes(random_actor_critic(policy), policy)
    assert episodes[-1].score == -1.0
    assert [each.score for each in episodes[:-1]] == [float(sum(each.reply.ids)) % 7 - 3 for each in episodes[:-1]]


def test_what_is_thought_of_a_reply_does_not_depend_on_its_company() -> None:
    policy, reference = random_gpt(), random_gpt(2)
    model = random_actor_critic(policy)
    for episode in random_episodes(model, reference):
        batch = reply_batch([episode.prompt], [episode.reply.ids])
        for who, found in ((policy, episode.log_probs), (reference, episode.reference)):
            np.testing.assert_allclose(
                found, reply_log_probs(who, batch, Tape(), 1.0, never_written(END))[0], rtol=1e-11
            )
        values = model.critic.values(batch.inputs, batch.rows, batch.scored, Tape())
        np.testing.assert_allclose(episode.values, values, rtol=1e-11)


@pytest.mark.parametrize(("decay", "beta"), [(1.0, 0.3), (0.9, 0.0), (0.95, 0.1)])
def test_what_replies_teach(decay: float, beta: float) -> None:
    """Returns are advantages as they were and values; what is learned from is normalised over all replies."""
    reference = random_gpt(2)
    task = task_of(reference, gae_lambda=decay, kl_coef=beta)
    episodes = random_episodes(random_actor_critic(random_gpt()), reference)
    advantages = []
    for episode, found in zip(episodes, task.rollouts(episodes), strict=True):
        rewards = beta * (episode.reference - episode.log_probs)
        rewards[-1] += episode.score
        own = advantages_of(rewards, episode.values, 1.0, decay)
        np.testing.assert_allclose(found.returns, own + episode.values, rtol=1e-12)
        if decay == 1:
            np.testing.assert_allclose(found.returns, np.cumsum(rewards[::-1])[::-1], rtol=1e-9)
        np.testing.assert_array_equal(found.values, episode.values)
        np.testing.assert_array_equal(found.reply, episode.reply.ids)
        advantages.append(own)
    white = np.concatenate([each.advantages for each in task.rollouts(episodes)])
    plain = np.concatenate(advantages)
    np.testing.assert_allclose(white, (plain - plain.mean()) / plain.std(), rtol=1e-6)


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
def test_normalisation_is_over_all_parts_together(parts: list[list[float]]) -> None:
    arrays = [np.array(part) for part in parts]
    white = normalised(arrays)
    assert [len(part) for part in white] == [len(part) for part in parts]
    before, after = np.concatenate(arrays), np.concatenate(white)
    if before.std() > 1e-3:
        assert after.mean() == pytest.approx(0, abs=1e-9)
        assert after.std() == pytest.approx(1, abs=1e-4)
        np.testing.assert_allclose(after * before.std(), before - before.mean(), rtol=1e-4, atol=1e-9)
    else:
        assert np.isfinite(after).all()

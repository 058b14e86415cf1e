"""The loss of PPO through whole models, in float64."""

import math

import numpy as np
import pytest

from tests.preference.small import gradient_of, random_actor_critic, random_episodes, random_gpt, random_texts
from toolkit.models.gpt import GPTBatch
from toolkit.models.reward import ActorCritic
from toolkit.nn.tape import Tape
from toolkit.preference.advantages import advantages_of
from toolkit.preference.examples import reply_batch
from toolkit.preference.policy import never_written, reply_log_probs
from toolkit.preference.ppo import Experience, PPOConfig, PPOTask
from toolkit.proof import central_difference
from toolkit.tokenization.special import END


def task_of(reference, **settings) -> PPOTask:
    prompts, _ = random_texts()
    return PPOTask(prompts, prompts, END, reference, lambda *_: None, PPOConfig(max_new_tokens=5, **settings))


def experience_of(model: ActorCritic, task: PPOTask) -> list[Experience]:
    reference = task.reference
    return task.experience(random_episodes(model, reference, task.config.temperature))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_before_the_first_update_nothing_is_clipped_and_nobody_has_moved(temperature: float) -> None:
    policy = random_gpt()
    model, task = random_actor_critic(policy), task_of(policy, temperature=temperature)
    episodes = random_episodes(model, policy, temperature)
    for episode in episodes:
        np.testing.assert_array_equal(episode.log_probs, episode.reference)
        assert episode.divergence == 0
    share = task.experience(episodes)
    sums = task.loss(model, share, Tape())
    tokens = sum(len(each.reply) for each in share)
    assert sums.tokens == tokens
    assert sums.clip_fraction == 0
    assert sums.approx_kl == pytest.approx(0, abs=1e-12)
    assert sums.policy_loss == pytest.approx(0, abs=1e-9)  # -Σ A, and A is whitened
    assert sums.value_loss == pytest.approx(sum(((e.values - e.returns) ** 2).sum() / 2 for e in share))
    assert sums.negative_log_likelihood == pytest.approx(-sum(each.log_probs.sum() for each in share))
    batch = reply_batch([each.prompt for each in share], [each.reply for each in share])
    again, _ = reply_log_probs(model.policy, batch, Tape(), temperature, never_written(END))
    np.testing.assert_allclose(np.exp(again - np.concatenate([each.log_probs for each in share])), 1, rtol=1e-13)


def test_the_first_gradient_is_that_of_reinforce() -> None:
    """-Σ A ∇log π, every token by itself through the cross-entropy of the language model."""
    policy = random_gpt(output_bias=True, bias=True)
    policy.output_bias.data[never_written(END)] = -1e4  # the cross-entropy is over all tokens
    model, task = random_actor_critic(policy), task_of(policy, value_coefficient=0.0)
    share = experience_of(model, task)
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
    task = task_of(random_gpt(3), temperature=temperature, value_coefficient=0.3, clip=0.1, value_clip=0.2)
    share = experience_of(model, task)
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
    share = experience_of(model, task)
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
    """Returns are advantages as they were and values; what is learned from is whitened over all replies."""
    reference = random_gpt(2)
    task = task_of(reference, decay=decay, beta=beta)
    episodes = random_episodes(random_actor_critic(random_gpt()), reference)
    advantages = []
    for episode, found in zip(episodes, task.experience(episodes), strict=True):
        rewards = beta * (episode.reference - episode.log_probs)
        rewards[-1] += episode.score
        own = advantages_of(rewards, episode.values, 1.0, decay)
        np.testing.assert_allclose(found.returns, own + episode.values, rtol=1e-12)
        if decay == 1:
            np.testing.assert_allclose(found.returns, np.cumsum(rewards[::-1])[::-1], rtol=1e-9)
        np.testing.assert_array_equal(found.values, episode.values)
        np.testing.assert_array_equal(found.reply, episode.reply.ids)
        advantages.append(own)
    white = np.concatenate([each.advantages for each in task.experience(episodes)])
    plain = np.concatenate(advantages)
    np.testing.assert_allclose(white, (plain - plain.mean()) / plain.std(), rtol=1e-6)

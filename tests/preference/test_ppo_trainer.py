"""PPO as a run: it learns what it is asked to, and can be stopped and resumed between iterations."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.preference.small import small_ppo, small_ppo_task, start_policy
from tests.training.small import after_update, bits, log, press_ctrl_c
from toolkit.errors import ConfigError
from toolkit.models.reward import ActorCriticConfig, settings_like
from toolkit.models.storage import load_model
from toolkit.preference.ppo import PromptBatch
from toolkit.preference.ppo_trainer import minibatches


def test_it_learns_to_write_what_is_liked(tmp_path: Path) -> None:
    task = small_ppo_task(prompts=64)
    trainer = small_ppo(tmp_path / "run", task, updates=80, validate_every=80)
    trainer.train()
    first, *_, last = [record["rollout"] for record in log(tmp_path / "run", "rollout")]
    assert first["reward"] < -0.6
    assert first["kl_to_reference"] == pytest.approx(0, abs=1e-5)
    assert last["reward"] > 0.6
    assert last["ended"] > 0.95
    scores = trainer.state.scores
    assert scores["reward"] > 0.6
    assert 1 < scores["kl_to_reference"] < 8
    assert scores["loss"] == pytest.approx(0.02 * scores["kl_to_reference"] - scores["reward"])


def test_where_leaving_the_reference_costs_all_it_stays(tmp_path: Path) -> None:
    trainer = small_ppo(tmp_path / "run", small_ppo_task(prompts=64, kl_coef=100.0), updates=80, validate_every=80)
    trainer.train()
    last = log(tmp_path / "run", "rollout")[-1]["rollout"]
    assert last["reward"] < -0.6
    assert last["kl_to_reference"] < 0.4


def test_the_log_has_what_a_practitioner_looks_at(tmp_path: Path) -> None:
    trainer = small_ppo(tmp_path / "run")
    trainer.train()
    rollouts = log(tmp_path / "run", "rollout")
    assert [(record["update"], record["epoch"]) for record in rollouts] == [(1, 0), (5, 1), (9, 2), (13, 3)]
    expected = {"reward", "reward_std", "kl_to_reference", "length", "ended", "explained_variance"}
    assert all(record["rollout"].keys() == expected for record in rollouts)
    (averages,) = log(tmp_path / "run", "gradient_norm")
    assert {"policy_loss", "value_loss", "clip_fraction", "entropy", "approx_kl"} < averages.keys()
    assert 0 < averages["clip_fraction"] < 1
    assert 0 < averages["entropy"] < np.log(9)  # 24 tokens, of which 15 are never written
    validations = log(tmp_path / "run", "validation")
    assert [record["update"] for record in validations] == [8, 16]
    assert validations[0]["validation"].keys() == {"loss", "reward", "kl_to_reference", "length", "ended"}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path, workers: int) -> None:
    whole = small_ppo(tmp_path / "whole", workers=workers)
    whole.train()
    stopped = small_ppo(tmp_path / "stopped", workers=workers)
    after_update(stopped, 6, press_ctrl_c)
    stopped.train()
    assert stopped.interrupted
    assert stopped.state.update == 8  # the iteration is finished before Ctrl-C is obeyed
    resumed = small_ppo(tmp_path / "stopped", create=False, workers=workers)
    resumed.train(resumed.run.resume())
    assert bits(resumed) == bits(whole)
    for key in ("rollout", "validation"):
        assert log(tmp_path / "stopped", key) == log(tmp_path / "whole", key)


def test_the_best_checkpoint_is_a_policy_and_its_critic(tmp_path: Path) -> None:
    trainer = small_ppo(tmp_path / "run", updates=8)
    trainer.train()
    model = load_model(trainer.run.named("best"))
    np.testing.assert_array_equal(model.vector, trainer.model.vector)
    policy = model.language_model()
    assert policy.kind == "gpt"
    for name, value in policy.arrays().items():
        np.testing.assert_array_equal(value, model.arrays()[f"policy.{name}"])


def test_a_policy_that_was_fine_tuned_with_dropout_is_trained_without(tmp_path: Path) -> None:
    """Its masks would make the ratio of a policy to itself other than 1."""
    reference = start_policy(residual_dropout=0.3, embedding_dropout=0.2)
    trainer = small_ppo(tmp_path / "run", small_ppo_task(reference=reference))
    assert trainer.model.config == settings_like(ActorCriticConfig, start_policy().config)


def test_more_workers_than_prompts(tmp_path: Path) -> None:
    task = small_ppo_task(prompts=2, minibatches=1)
    task.prompts["valid"] = task.prompts["valid"][:1]
    trainer = small_ppo(tmp_path / "run", task, workers=3, updates=2, validate_every=2)
    trainer.train()
    assert trainer.state.update == 2


def test_two_workers_write_what_one_does(tmp_path: Path) -> None:
    """The draws of a prompt depend on its number, not on who replies to it."""
    found = []
    for workers in (1, 2):
        trainer = small_ppo(tmp_path / str(workers), workers=workers)
        trainer._start_from(None)
        with trainer.workers:
            found.append(trainer.epoch_batches(0)[0])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.prompt, other.prompt)
        np.testing.assert_array_equal(one.reply, other.reply)
        np.testing.assert_allclose(one.advantages, other.advantages, atol=1e-4)


def test_the_task_can_be_sent_to_a_process() -> None:
    task = small_ppo_task()
    again = pickle.loads(pickle.dumps(task))
    np.testing.assert_array_equal(again.reference.vector, task.reference.vector)
    assert again.reference.config == task.reference.config


def test_minibatches_have_every_reply_once_a_pass_and_are_made_when_they_are_needed() -> None:
    task, calls = small_ppo_task(ppo_epochs=3, minibatches=4), []

    def make() -> list[int]:
        calls.append(1)
        return list(range(30))

    batches = minibatches(make, task.config, [1, 2])
    assert len(batches) == 12
    assert not calls
    found = [batches[index] for index in range(12)]
    assert len(calls) == 1
    passes = [[each for batch in found[begin : begin + 4] for each in batch] for begin in (0, 4, 8)]
    assert all(sorted(each) == list(range(30)) for each in passes)
    assert passes[0] != passes[1] != passes[2]
    assert {len(batch) for batch in found} == {7, 8}
    assert [minibatches(make, task.config, [1, 2])[index] for index in range(12)] == found
    with pytest.raises(IndexError):
        batches[12]


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"updates": 18}, "updates"), ({"validate_every": 6}, "validate_every"), ({"accumulation": 2}, "accumulation")],
)
def test_settings_that_would_cut_an_iteration(tmp_path: Path, settings: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=f"^{named} is {settings[named]}: "):
        small_ppo(tmp_path / "run", **settings)


@pytest.mark.parametrize(("prompts", "distinct"), [(30, 30), (45, None)])
def test_an_iteration_has_no_prompt_twice_where_there_are_enough(
    tmp_path: Path, prompts: int, distinct: int | None
) -> None:
    trainer = small_ppo(tmp_path / "run", small_ppo_task(prompts=prompts))
    trainer._start_from(None)
    compute, drawn = trainer.workers.compute, []

    def remembering(name: str, draws: list[PromptBatch]) -> list:
        drawn.extend(draws)
        return compute(name, draws)

    trainer.workers.compute = remembering
    assert len(trainer.epoch_batches(0)[0]) == -(-prompts // 2)
    assert len(drawn[0].numbers) == prompts
    assert distinct is None or len(set(drawn[0].numbers.tolist())) == distinct

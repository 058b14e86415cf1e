"""Models, prompts and replies small enough to check whole, and a run of PPO small enough to repeat."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.checks import small_gpt_config
from tests.training.small import NoTokenizer
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.reward import ActorCritic, ActorCriticConfig, RewardConfig, RewardModel, copy_values, settings_like
from toolkit.models.storage import new_model
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape
from toolkit.preference.ppo import PPOConfig, PPOTask
from toolkit.preference.ppo_trainer import PPOTrainer
from toolkit.preference.replies import Episode, Reply, Score
from toolkit.tokenization.special import BOS, END
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run

CONFIG = small_gpt_config(max_length=16)
SIZE = CONFIG.vocab_size
TOKENIZER = NoTokenizer()
LIKED = 20


def random_values(config: GPTConfig, seed: int = 0, dtype: type = np.float64) -> Model:
    """A model of the kind of its settings whose every parameter is random, gains and biases included."""
    model, rng = new_model(config), np.random.default_rng(seed)
    model.allocate(dtype)
    for name, value in model.arrays().items():
        value[...] = rng.standard_normal(value.shape) * 0.4 + name.endswith("gain")
    return model


def random_gpt(seed: int = 0, **settings: Any) -> GPT:
    return random_values(dataclasses.replace(CONFIG, **settings), seed)


def random_reward_model(seed: int = 0) -> RewardModel:
    return random_values(settings_like(RewardConfig, CONFIG), seed)


def random_actor_critic(policy: GPT, seed: int = 1) -> ActorCritic:
    """The policy given, and a critic that is random."""
    model = random_values(settings_like(ActorCriticConfig, policy.config), seed)
    copy_values(policy, model.policy)
    return model


def random_ids(rng: np.random.Generator, lengths: Sequence[int]) -> list[Array]:
    """Texts of these lengths without special ids."""
    return [rng.integers(16, SIZE, length) for length in lengths]


PROMPT_LENGTHS, REPLY_LENGTHS = (3, 1, 5, 3, 7), (4, 1, 2, 6, 4)


def random_texts(seed: int = 5) -> tuple[list[Array], list[Array]]:
    """Prompts and replies of unequal lengths."""
    rng = np.random.default_rng(seed)
    prompts = [np.concatenate(([BOS], ids)) for ids in random_ids(rng, PROMPT_LENGTHS)]
    return prompts, [np.concatenate((ids[1:], [END])) for ids in random_ids(rng, REPLY_LENGTHS)]


def random_pairs_of_replies(count: int = 4, seed: int = 6) -> list[tuple[Array, Array, Array]]:
    rng = np.random.default_rng(seed)
    return [
        tuple(np.concatenate((ids, [END])) for ids in random_ids(rng, lengths))
        for lengths in rng.integers(1, 6, (count, 3))
    ]


def random_episodes(model: ActorCritic, reference: GPT, temperature: float = 1.0) -> list[Episode]:
    """What is thought of random replies; the last of them has not ended."""
    prompts, ids = random_texts()
    replies = [Reply(each, True) for each in ids]
    replies[-1] = Reply(ids[-1][:-1], False)

    def score(prompts: Sequence[Array], replies: Sequence[Array], _memory: Pool) -> Array:
        return np.array([float(sum(reply)) % 7 - 3 for reply in replies])

    task = PPOTask(prompts, prompts, END, reference, score, PPOConfig(temperature=temperature, max_new_tokens=1))
    return task.episodes_of(model, prompts, replies, Pool())


def gradient_of(model: Model, compute: Any) -> Array:
    """What `compute(tape)` adds to the gradients, as one vector."""
    vector = np.zeros_like(model.vector)
    tape = Tape(model.views(vector))
    compute(tape)
    assert tape.finished
    return vector


def likes(_prompts: Sequence[Array], replies: Sequence[Array], _memory: Pool) -> Array:
    """A judge by hand: twice the share of one token among those before the end marker, less one."""
    return np.array([2 * np.mean(reply[:-1] == LIKED) - 1 if len(reply) > 1 else -1.0 for reply in replies])


def start_policy(**settings: Any) -> GPT:
    """A policy that has learned nothing: all tokens are about equally probable."""
    config = GPTConfig(vocab_size=24, d_model=16, layers=1, num_heads=2, d_ff=32, max_length=12, **settings)
    model = GPT(config)
    model.allocate()
    model.initialize(np.random.default_rng(0))
    return model


def small_ppo_task(score: Score = likes, reference: GPT | None = None, **settings: Any) -> PPOTask:
    rng = np.random.default_rng(1)
    prompts = [np.concatenate(([BOS], rng.integers(16, 24, length))) for length in rng.integers(1, 5, 40)]
    given = {"prompts": 32, "ppo_epochs": 2, "minibatches": 2, "max_new_tokens": 5, "kl_coef": 0.02, "unfinished": -1.0}
    return PPOTask(
        prompts[:30], prompts[30:], END, reference or start_policy(), score, PPOConfig(**{**given, **settings})
    )


def small_ppo(path: Path, task: PPOTask | None = None, create: bool = True, **settings: Any) -> PPOTrainer:
    task = task or small_ppo_task()
    given = {"updates": 16, "validate_every": 8, "learning_rate": 5e-3, "warmup": 0, "schedule": "constant"}
    given |= {"best_by": "loss", "workers": 1, "weight_decay": 0.0}
    config = TrainingConfig(**{**given, **settings})
    run = Run(path, {"workers": config.workers}, "how to train it")
    if create:
        run.create()
    return PPOTrainer(task, config, run, TOKENIZER, quiet=True)

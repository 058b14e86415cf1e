"""The loop of PPO: write replies, learn from them for a few passes, and again with the policy that came of it."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.errors import ConfigError
from toolkit.models.reward import ActorCritic, ActorCriticConfig, RewardModel, settings_like
from toolkit.preference.ppo import PPOConfig, PPOTask, PromptBatch, ReplySums, Rollout
from toolkit.preference.replies import Episode
from toolkit.preference.reward import ModelScore
from toolkit.tokenization import Tokenizer
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.task import Evaluator, Lazy
from toolkit.training.trainer import Trainer

# Validation draws the same random numbers every time, and training never these.
_VALIDATION_SEED = 0


class PPOTrainer(Trainer):
    """Trains an `ActorCritic`, without dropout, on rollouts that it makes itself.

    The policy begins as the reference, and the critic as the reward model (on the scale of its scores; where another
    judge scores, as the reference's trunk with a head of zeros). An epoch is an iteration: replies of the present
    policy to `task.config.prompts` prompts, and `task.config.updates` updates on them. Only between two iterations can
    the run be stopped, validated and resumed. The log has the figures of each iteration's replies under "rollout".

    Raises ConfigError for settings of training that do not fit that.
    """

    task: PPOTask

    def __init__(
        self,
        task: PPOTask,
        config: TrainingConfig,
        run: Run,
        tokenizer: Tokenizer,
        evaluator: Evaluator | None = None,
        quiet: bool = False,
    ):
        each = task.config.updates
        for name in ("updates", "validate_every"):
            if getattr(config, name) % each:
                raise ConfigError(
                    f"{name} is {getattr(config, name)}: it must be a multiple of the {each} updates of an iteration "
                    "(ppo_epochs times minibatches)"
                )
        if config.accumulation != 1:
            raise ConfigError(f"accumulation is {config.accumulation}: an update of PPO is one minibatch, choose 1")
        build = functools.partial(ActorCritic, settings_like(ActorCriticConfig, task.reference.config, dropout=False))
        super().__init__(build, task, config, run, tokenizer, evaluator, quiet, self._begin)

    def _begin(self, model: ActorCritic) -> None:
        reference, score = self.task.reference, self.task.score
        if isinstance(score, ModelScore):
            critic = score.critic()
        else:  # to which all texts are worth the same
            critic = RewardModel(reference.config)
            critic.allocate(reference.vector.dtype.type)
            critic.begin_from(reference)
        model.begin_from(reference, critic)

    def epoch_batches(self, epoch: int) -> Sequence[list[Rollout]]:
        return minibatches(lambda: self._rollouts(epoch), self.task.config, [self.config.seed, epoch])

    def may_stop(self) -> bool:
        return self.state.update % self.task.config.updates == 0

    def validation_loss(self) -> ReplySums:
        """Return sums over replies to all validation prompts, with the same random numbers every time."""
        numbers = np.arange(len(self.task.prompts["valid"]))
        return self.task.reply_sums(self._episodes("valid", numbers, _VALIDATION_SEED))

    def _rollouts(self, epoch: int) -> list[Rollout]:
        """Sample replies of the present policy to the prompts of this epoch, and turn them into rollouts."""
        available, wanted = len(self.task.prompts["train"]), self.task.config.prompts
        rng = np.random.default_rng([self.config.seed, epoch])
        numbers = rng.choice(available, wanted, replace=wanted > available)
        episodes = self._episodes("train", numbers, int(rng.integers(1, 1 << 62)))
        rollouts = self.task.rollouts(episodes)
        figures = self._figures(episodes, rollouts)
        # As part of the update that it belongs to: a resumed run forgets this line and writes it again.
        self.run.log({"update": self.state.update + 1, "epoch": epoch, "rollout": figures})
        return rollouts

    def _episodes(self, name: str, numbers: np.ndarray, seed: int) -> list[Episode]:
        parts = np.array_split(numbers, self.workers.parts)
        firsts = np.cumsum([0, *map(len, parts)])
        batches = [PromptBatch(name, part, seed, int(first)) for part, first in zip(parts, firsts[:-1], strict=True)]
        return [episode for part in self.workers.compute("episodes", batches) for episode in part]

    def _figures(self, episodes: list[Episode], rollouts: list[Rollout]) -> dict[str, Any]:
        """Compute what a practitioner looks at: reward, distance of the policy, and how well the critic foresees."""
        means = self.task.scores(self.task.reply_sums(episodes))
        means.pop("loss")
        returns = np.concatenate([each.returns for each in rollouts])
        errors = returns - np.concatenate([each.values for each in rollouts])
        explained = 1 - float(errors.var()) / max(float(returns.var()), 1e-8)
        spread = float(np.std([each.score for each in episodes]))
        return {**means, "reward_std": spread, "explained_variance": explained}


def minibatches(make: Callable[[], list[Rollout]], config: PPOConfig, seed: list[int]) -> Sequence[list[Rollout]]:
    """Divide an iteration into minibatches: in every pass all of its replies once, in another order.

    Replies are written when the first minibatch is asked for: a resumed run asks of the iteration that is done only
    how many there are.
    """
    rollouts: list[Rollout] = []

    def minibatch(index: int) -> list[Rollout]:
        rollouts.extend(() if rollouts else make())
        turn, place = divmod(index, config.minibatches)
        order = np.random.default_rng([*seed, turn]).permutation(len(rollouts))
        return [rollouts[number] for number in np.array_split(order, config.minibatches)[place]]

    return Lazy(config.updates, minibatch)

"""The loop of PPO: write replies, learn from them for a few passes, and again with the policy that came of it."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.errors import ConfigError
from toolkit.models.gpt import GPT
from toolkit.models.reward import ActorCritic, ActorCriticConfig, RewardModel, settings_like
from toolkit.nn.module import Model
from toolkit.preference.ppo import Draw, Experience, PPOTask, ReplySums
from toolkit.preference.rollout import Episode
from toolkit.preference.score import ModelScore
from toolkit.tokenization import Tokenizer
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.trainer import Evaluation, Trainer

# Validation draws the same random numbers every time, and training never these.
_VALIDATION_SEED = 0


def nothing_else(_model: Model) -> Evaluation:
    """No scores but those of the validation replies."""
    return Evaluation({}, [])


class PPOTrainer(Trainer):
    """Trains an `ActorCritic`, without dropout, on experience that it makes itself.

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
        evaluate: Callable[[ActorCritic], Evaluation] = nothing_else,
        quiet: bool = False,
    ):
        each = task.config.updates
        for name in ("updates", "validate_every"):
            if getattr(config, name) % each:
                raise ConfigError(
                    f"{name} is {getattr(config, name)}: it must be a multiple of the {each} updates of an iteration "
                    "(passes times minibatches)"
                )
        if config.accumulation != 1:
            raise ConfigError(f"accumulation is {config.accumulation}: an update of PPO is one minibatch, choose 1")
        build = functools.partial(ActorCritic, settings_like(ActorCriticConfig, task.reference.config, dropout=False))
        super().__init__(build, task, config, run, tokenizer, evaluate, quiet, self._begin)

    def _begin(self, model: ActorCritic) -> None:
        reference, score = self.task.reference, self.task.score
        critic = score.critic() if isinstance(score, ModelScore) else _indifferent(reference)
        model.begin_from(reference, critic)

    def epoch_batches(self, epoch: int) -> Sequence[list[Experience]]:
        return Minibatches(lambda: self._experience(epoch), self.task, [self.config.seed, epoch])

    def may_stop(self) -> bool:
        return self.progress.update % self.task.config.updates == 0

    def validation_loss(self) -> ReplySums:
        """Sums over replies to all validation prompts, with the same random numbers every time."""
        numbers = np.arange(len(self.task.prompts["valid"]))
        return self.task.reply_sums(self._roll_out("valid", numbers, _VALIDATION_SEED))

    def _experience(self, epoch: int) -> list[Experience]:
        """Replies of the present policy to the prompts of this epoch, and what they teach."""
        available, wanted = len(self.task.prompts["train"]), self.task.config.prompts
        rng = np.random.default_rng([self.config.seed, epoch])
        numbers = rng.choice(available, wanted, replace=wanted > available)
        episodes = self._roll_out("train", numbers, int(rng.integers(1, 1 << 62)))
        experience = self.task.experience(episodes)
        figures = self._figures(episodes, experience)
        # As part of the update that it belongs to: a resumed run forgets this line and writes it again.
        self.run.log({"update": self.progress.update + 1, "epoch": epoch, "rollout": figures})
        return experience

    def _roll_out(self, name: str, numbers: np.ndarray, seed: int) -> list[Episode]:
        parts = np.array_split(numbers, self.workers.count)
        firsts = np.cumsum([0, *map(len, parts)])
        draws = [Draw(name, part, seed, int(first)) for part, first in zip(parts, firsts[:-1], strict=True)]
        return [episode for part in self.workers.compute("rollout", draws) for episode in part]

    def _figures(self, episodes: list[Episode], experience: list[Experience]) -> dict[str, Any]:
        """What a practitioner looks at: is the reward rising, how far has the policy gone, does the critic foresee?"""
        means = self.task.scores(self.task.reply_sums(episodes))
        means.pop("loss")
        returns = np.concatenate([each.returns for each in experience])
        errors = returns - np.concatenate([each.values for each in experience])
        explained = 1 - float(errors.var()) / max(float(returns.var()), 1e-8)
        spread = float(np.std([each.score for each in episodes]))
        return {**means, "reward_std": spread, "explained_variance": explained}


def _indifferent(policy: GPT) -> RewardModel:
    """A reward model to which all texts are worth the same."""
    model = RewardModel(policy.config)
    model.allocate(policy.vector.dtype.type)
    model.begin_from(policy)
    return model


class Minibatches(Sequence[list[Experience]]):
    """The minibatches of an iteration: in every pass all of its replies once, in another order.

    Replies are written when the first minibatch is asked for, and not where only their number is: what a resumed run
    asks of the iteration that is done.
    """

    def __init__(self, make: Callable[[], list[Experience]], task: PPOTask, seed: list[int]):
        self._make, self._config, self._seed = make, task.config, seed
        self._experience: list[Experience] = []

    def __len__(self) -> int:
        return self._config.updates

    def __getitem__(self, index: int) -> list[Experience]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        self._experience = self._experience or self._make()
        turn, place = divmod(index, self._config.minibatches)
        order = np.random.default_rng([*self._seed, turn]).permutation(len(self._experience))
        return [self._experience[number] for number in np.array_split(order, self._config.minibatches)[place]]

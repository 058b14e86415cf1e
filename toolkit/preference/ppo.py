"""Proximal policy optimization of a language model's replies (Schulman et al. 2017; Ouyang et al. 2022, section 3.5).

The task: it writes replies, says what they were worth, and knows the loss of experience. The loop is in `ppo_trainer`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from toolkit.errors import ConfigError, DataError
from toolkit.functional.arrays import Array
from toolkit.functional.clipped_policy import clipped_policy, clipped_policy_backward
from toolkit.functional.clipped_value import clipped_value, clipped_value_backward
from toolkit.models.gpt import GPT
from toolkit.models.reward import ActorCritic
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.preference.advantages import advantages_of, token_rewards, whitened
from toolkit.preference.examples import reply_batch
from toolkit.preference.policy import never_written, reply_log_probs, reply_log_probs_backward
from toolkit.preference.rollout import Episode, Score, check_prompts, episodes_of, write_replies


@dataclass(frozen=True)
class PPOConfig:
    """How a policy learns from rewards."""

    prompts: int = 256  # replies that are written in an iteration, each to another prompt where there are enough
    passes: int = 2  # over the replies of an iteration
    minibatches: int = 4  # updates in each pass
    beta: float = 0.2  # price of leaving the reference: each token costs β (log π - log π_ref)
    clip: float = 0.2  # ε: a ratio of probabilities outside 1 ± ε is not pushed further
    value_clip: float = 0.2  # how far a value moves from where it was when the reply was written
    value_coefficient: float = 0.5  # weight of the critic's loss beside the policy's
    discount: float = 1.0  # γ: what a reward is worth a token earlier
    decay: float = 0.95  # λ of generalised advantage estimation
    temperature: float = 1.0  # replies are sampled, and all probabilities taken, at this temperature
    max_new_tokens: int = 48  # the longest reply, end marker included
    unfinished: float = -1.0  # score of a reply that does not end by itself; the reward model's lie around 0, ± 1

    def __post_init__(self) -> None:
        """Raises ConfigError where a setting is out of range."""
        for name, value in vars(self).items():
            if not math.isfinite(value):
                raise ConfigError(f"{name} is {value}: it must be a finite number")
        for name in ("prompts", "passes", "minibatches", "max_new_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must be at least 1")
        for name in ("clip", "value_clip", "temperature"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must be above 0")
        for name in ("beta", "value_coefficient"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must not be negative")
        for name in ("discount", "decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must lie between 0 and 1")
        if self.minibatches > self.prompts:
            raise ConfigError(f"{self.prompts} prompts cannot be divided into {self.minibatches} minibatches")

    @property
    def updates(self) -> int:
        """Of an iteration."""
        return self.passes * self.minibatches


class Experience(NamedTuple):
    """A reply and what is to be learnt from it."""

    prompt: Array  # (P,) ids
    reply: Array  # (T,) ids
    log_probs: Array  # (T,) of the policy that wrote it
    values: Array  # (T,) of the critic then
    advantages: Array  # (T,) whitened over the iteration
    returns: Array  # (T,) what the critic should have said


class PolicySums(NamedTuple):
    """Sums over tokens of replies. The log shows them divided by the number of tokens."""

    loss: float  # policy_loss + value_coefficient · value_loss
    negative_log_likelihood: float
    tokens: int
    policy_loss: float
    value_loss: float
    clip_fraction: float
    entropy: float  # of the policy, in nats
    approx_kl: float  # of the policy that wrote the replies from the present one


class ReplySums(NamedTuple):
    """Sums over replies, which stand for tokens."""

    loss: float  # -(reward - β KL)
    negative_log_likelihood: float  # the same
    tokens: int  # replies
    reward: float
    kl_to_reference: float
    length: float
    ended: float


class Draw(NamedTuple):
    """Prompts that are to be replied to."""

    name: str  # of the set: "train" or "valid"
    numbers: Array  # (B,) of its prompts
    seed: int
    first: int = 0  # the place of the first among all that are drawn


class PPOTask:
    """Prompts, the reference that the policy must not leave far behind, and the judge of its replies.

    prompts, valid_prompts: ids as the model reads them, from the begin mark (where it knows one) to what opens a reply.
    end: the id that ends a reply. reference: the policy that training starts from. score: see `Score`; that of a reward
    model is a `ModelScore`. Raises DataError where there are no prompts, or one leaves no room for a reply.
    """

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        valid_prompts: Sequence[Sequence[int]],
        end: int,
        reference: GPT,
        score: Score,
        config: PPOConfig,
    ):
        given = {"train": prompts, "valid": valid_prompts}
        self.prompts = {name: [np.asarray(each, np.int64) for each in part] for name, part in given.items()}
        self.end, self.score, self.config = end, score, config
        self._excluded = never_written(end)
        self.reference = reference
        for name, part in self.prompts.items():
            if not part:
                raise DataError(f"there are no {name} prompts: give at least one to train and one to validate on")
            check_prompts(part, reference.config)
            longest = max(map(len, part))
            if longest + config.max_new_tokens > reference.config.max_length:
                raise DataError(
                    f"a {name} prompt has {longest} tokens, which leaves less room than {config.max_new_tokens} tokens "
                    f"in a context of {reference.config.max_length}: shorten it, or lower max_new_tokens"
                )

    def rollout(self, model: ActorCritic, draw: Draw, memory: Pool) -> list[Episode]:
        """Replies to some prompts, and what is thought of them, in order: a worker's part of an iteration."""
        config, prompts = self.config, [self.prompts[draw.name][number] for number in draw.numbers]
        replies = write_replies(
            model.policy,
            prompts,
            self.end,
            temperature=config.temperature,
            max_new_tokens=config.max_new_tokens,
            seed=draw.seed,
            first=draw.first,
        )
        return episodes_of(
            model,
            self.reference,
            self.score,
            prompts,
            replies,
            end=self.end,
            temperature=config.temperature,
            unfinished=config.unfinished,
            memory=memory,
        )

    def experience(self, episodes: Sequence[Episode]) -> list[Experience]:
        """What the replies of an iteration teach: returns as they were, advantages whitened over all tokens."""
        config, advantages = self.config, []
        for episode in episodes:
            rewards = token_rewards(episode.log_probs, episode.reference, episode.score, config.beta)
            advantages.append(advantages_of(rewards, episode.values, config.discount, config.decay))
        returns = [raw + episode.values for raw, episode in zip(advantages, episodes, strict=True)]
        return [
            Experience(each.prompt, each.reply.ids, each.log_probs, each.values, white, own_returns)
            for each, white, own_returns in zip(episodes, whitened(advantages), returns, strict=True)
        ]

    def split(self, batch: Sequence[Experience], parts: int) -> list[list[Experience]]:
        """The shares of `parts` workers: from the longest text to the shortest, dealt out there and back again."""
        order = sorted(batch, key=lambda each: -len(each.prompt) - len(each.reply))
        turns = (divmod(index, parts) for index in range(len(order)))
        places = [place if turn % 2 == 0 else parts - 1 - place for turn, place in turns]
        return [[each for each, place in zip(order, places, strict=True) if place == part] for part in range(parts)]

    def loss(self, model: ActorCritic, share: Sequence[Experience], tape: Tape) -> PolicySums:
        """Sums over the tokens of a share; adds the gradients of policy and critic where the tape keeps."""
        if not share:
            return PolicySums(0.0, 0.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
        config = self.config
        batch = reply_batch([each.prompt for each in share], [each.reply for each in share])
        old, old_values, advantages, returns = (np.concatenate(part) for part in list(zip(*share, strict=True))[2:])
        log_probs, entropies = reply_log_probs(model.policy, batch, tape, config.temperature, self._excluded)
        policy, saved = clipped_policy(log_probs, old, advantages, config.clip)
        if tape.keeps:
            reply_log_probs_backward(model.policy, *clipped_policy_backward(1.0, saved), tape)
        values = model.critic.values(batch.inputs, batch.rows, batch.scored, tape)
        value_loss, saved = clipped_value(values, old_values, returns, config.value_clip)
        if tape.keeps:
            model.critic.backward(*clipped_value_backward(config.value_coefficient, saved), tape)
        return PolicySums(
            policy.loss + config.value_coefficient * value_loss,
            -float(log_probs.sum(dtype=np.float64)),
            len(log_probs),
            policy.loss,
            value_loss,
            policy.clipped,
            float(entropies.sum(dtype=np.float64)),
            policy.divergence,
        )

    def reply_sums(self, episodes: Sequence[Episode]) -> ReplySums:
        """How good replies are, for the log and for validation."""
        reward = sum(each.score for each in episodes)
        divergence = sum(each.divergence for each in episodes)
        loss = self.config.beta * divergence - reward
        length = float(sum(len(each.reply.ids) for each in episodes))
        ended = float(sum(each.reply.ended for each in episodes))
        return ReplySums(loss, loss, len(episodes), reward, divergence, length, ended)

    def scores(self, sums: ReplySums) -> dict[str, float]:
        """Means over replies; the loss is what training lowers: -(reward - β KL)."""
        names = ("loss", "reward", "kl_to_reference", "length", "ended")
        return {name: getattr(sums, name) / sums.tokens for name in names}

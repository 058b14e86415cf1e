"""Proximal policy optimization of a language model's replies (Schulman et al. 2017; Ouyang et al. 2022, section 3.5).

The task: it writes replies, turns their rewards into advantages, and knows the loss of these rollouts. The loop is in
`ppo_trainer`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from toolkit.display import short_repr
from toolkit.errors import ConfigError, DataError
from toolkit.functional.arrays import Array
from toolkit.functional.losses import clipped_policy, clipped_policy_backward, clipped_value, clipped_value_backward
from toolkit.models.gpt import GPT
from toolkit.models.reward import ActorCritic
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.preference.replies import (
    Episode,
    Reply,
    Score,
    check_prompts,
    never_written,
    reply_batch,
    reply_log_probs,
    together,
    write_replies,
)
from toolkit.training.config import check_ranges
from toolkit.training.task import Task


@dataclass(frozen=True)
class PPOConfig:
    """Settings of learning from rewards."""

    prompts: int = 256  # replies that are written in an iteration, each to another prompt where there are enough
    ppo_epochs: int = 2  # passes over the replies of an iteration
    minibatches: int = 4  # updates in each pass
    kl_coef: float = 0.2  # β, the price of leaving the reference: each token costs β (log π - log π_ref)
    clip: float = 0.2  # ε: a ratio of probabilities outside 1 ± ε is not pushed further
    value_clip: float = 0.2  # how far a value moves from where it was when the reply was written
    vf_coef: float = 0.5  # weight of the critic's loss beside the policy's
    gamma: float = 1.0  # γ: what a reward is worth a token earlier
    gae_lambda: float = 0.95  # λ of generalised advantage estimation
    temperature: float = 1.0  # replies are sampled, and all probabilities taken, at this temperature
    max_new_tokens: int = 48  # the longest reply, end marker included
    unfinished: float = -1.0  # score of a reply that does not end by itself; the reward model's lie around 0, ± 1

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Raise ConfigError where a setting is out of range."""
        check_ranges(self, _RANGES)
        if self.minibatches > self.prompts:
            raise ConfigError(f"{self.prompts} prompts cannot be divided into {self.minibatches} minibatches")

    @property
    def updates(self) -> int:
        """Count the updates of an iteration."""
        return self.ppo_epochs * self.minibatches


_RANGES = (
    ("prompts ppo_epochs minibatches max_new_tokens", lambda x: x >= 1, "be at least 1"),
    ("clip value_clip temperature", lambda x: x > 0, "be above 0"),
    ("kl_coef vf_coef", lambda x: x >= 0, "not be negative"),
    ("gamma gae_lambda", lambda x: 0 <= x <= 1, "lie between 0 and 1"),
)


class Rollout(NamedTuple):
    """A reply with the advantage and the return of each of its tokens: what training learns from."""

    prompt: Array  # (P,) ids
    reply: Array  # (T,) ids
    log_probs: Array  # (T,) of the policy that wrote it
    values: Array  # (T,) of the critic then
    advantages: Array  # (T,) normalised over the iteration
    returns: Array  # (T,) what the critic should have said

    __repr__ = short_repr


class PolicySums(NamedTuple):
    """Sums over tokens of replies. The log shows them divided by the number of tokens."""

    loss: float  # policy_loss + vf_coef · value_loss
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


class PromptBatch(NamedTuple):
    """Prompts that one worker is to reply to."""

    name: str  # of the set: "train" or "valid"
    numbers: Array  # (B,) of its prompts
    seed: int
    first: int = 0  # the place of the first among all that are drawn


class PPOTask(Task):
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

    def episodes(self, model: ActorCritic, batch: PromptBatch, memory: Pool) -> list[Episode]:
        """Sample replies to prompts and score them, in order: a worker's part of an iteration."""
        config, prompts = self.config, [self.prompts[batch.name][number] for number in batch.numbers]
        sampling = {"temperature": config.temperature, "max_new_tokens": config.max_new_tokens}
        replies = write_replies(model.policy, prompts, self.end, seed=batch.seed, first=batch.first, **sampling)
        return self.episodes_of(model, prompts, replies, memory)

    def episodes_of(
        self, model: ActorCritic, prompts: Sequence[Array], replies: Sequence[Reply], memory: Pool
    ) -> list[Episode]:
        """Score replies by policy, reference, critic and judge -> an episode for each, in their order.

        Those that did not end by themselves score `unfinished`, whatever the judge says.
        """
        found: list = [None] * len(prompts)
        for chosen in together(prompts, replies):
            asked, given = [prompts[index] for index in chosen], [replies[index] for index in chosen]
            ids = [reply.ids for reply in given]
            batch, ends = reply_batch(asked, ids), np.cumsum([len(each) for each in ids])[:-1]
            each = [
                reply_log_probs(who, batch, Tape(memory=memory), self.config.temperature, self._excluded)[0]
                for who in (model.policy, self.reference)
            ]
            each.append(model.critic.values(batch.inputs, batch.rows, batch.scored, Tape(memory=memory)))
            parts = zip(*(np.split(array.copy(), ends) for array in each), strict=True)
            scores = self.score(asked, ids, memory)
            for index, prompt, reply, of_tokens, worth in zip(chosen, asked, given, parts, scores, strict=True):
                score = float(worth) if reply.ended else self.config.unfinished
                found[index] = Episode(prompt, reply, *of_tokens, score)
        return found

    def rollouts(self, episodes: Sequence[Episode]) -> list[Rollout]:
        """Compute returns as they were, and advantages normalised over all tokens of the iteration."""
        config, advantages = self.config, []
        for episode in episodes:
            rewards = token_rewards(episode.log_probs, episode.reference, episode.score, config.kl_coef)
            advantages.append(advantages_of(rewards, episode.values, config.gamma, config.gae_lambda))
        returns = [raw + episode.values for raw, episode in zip(advantages, episodes, strict=True)]
        return [
            Rollout(each.prompt, each.reply.ids, each.log_probs, each.values, normal, own_returns)
            for each, normal, own_returns in zip(episodes, normalised(advantages), returns, strict=True)
        ]

    def split(self, batch: Sequence[Rollout], parts: int) -> list[list[Rollout]]:
        """Divide a batch among `parts` workers: from the longest text to the shortest, there and back again."""
        order = sorted(batch, key=lambda each: -len(each.prompt) - len(each.reply))
        turns = (divmod(index, parts) for index in range(len(order)))
        places = [place if turn % 2 == 0 else parts - 1 - place for turn, place in turns]
        return [[each for each, place in zip(order, places, strict=True) if place == part] for part in range(parts)]

    shards = split

    def loss(self, model: ActorCritic, share: Sequence[Rollout], tape: Tape) -> PolicySums:
        """Return sums over the tokens of a share; add the gradients of policy and critic where the tape keeps."""
        if not share:
            return PolicySums(0.0, 0.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
        config = self.config
        batch = reply_batch([each.prompt for each in share], [each.reply for each in share])
        old, old_values, advantages, returns = (np.concatenate(part) for part in list(zip(*share, strict=True))[2:])
        log_probs, entropies = reply_log_probs(model.policy, batch, tape, config.temperature, self._excluded)
        policy, saved = clipped_policy(log_probs, old, advantages, config.clip)
        if tape.keeps:
            model.policy.backward(tape, *clipped_policy_backward(1.0, saved))
        values = model.critic.values(batch.inputs, batch.rows, batch.scored, tape)
        value_loss, saved = clipped_value(values, old_values, returns, config.value_clip)
        if tape.keeps:
            model.critic.backward(*clipped_value_backward(config.vf_coef, saved), tape)
        return PolicySums(
            policy.loss + config.vf_coef * value_loss,
            -float(log_probs.sum(dtype=np.float64)),
            len(log_probs),
            policy.loss,
            value_loss,
            policy.clipped,
            float(entropies.sum(dtype=np.float64)),
            policy.divergence,
        )

    def reply_sums(self, episodes: Sequence[Episode]) -> ReplySums:
        """Sum up the scores of replies, for the log and for validation."""
        reward = sum(each.score for each in episodes)
        divergence = sum(each.divergence for each in episodes)
        loss = self.config.kl_coef * divergence - reward
        length = float(sum(len(each.reply.ids) for each in episodes))
        ended = float(sum(each.reply.ended for each in episodes))
        return ReplySums(loss, loss, len(episodes), reward, divergence, length, ended)

    def scores(self, sums: ReplySums) -> dict[str, float]:
        """Divide the sums by the number of replies; the loss is what training lowers: -(reward - β KL)."""
        names = ("loss", "reward", "kl_to_reference", "length", "ended")
        return {name: getattr(sums, name) / sums.tokens for name in names}


def token_rewards(log_probs: Array, reference: Array, score: float, kl_coef: float) -> Array:
    """Return the reward of every token of a reply (Ouyang et al. 2022, section 3.5; Ziegler et al. 2019, eq. 2):

        r_t = -β (log π(y_t) - log π_ref(y_t))        and for the last token the reply's score more

    Shapes: log_probs and reference (T,) -> (T,).
    """
    rewards = -kl_coef * (log_probs - reference)
    rewards[-1] += score
    return rewards


def advantages_of(rewards: Array, values: Array, gamma: float = 1.0, gae_lambda: float = 0.95) -> Array:
    """Estimate the generalised advantages of one reply (Schulman et al. 2016, eq. 16):

        δ_t = r_t + γ V_t+1 - V_t        A_t = δ_t + γλ A_t+1

    Nothing follows the last token: V_T = A_T = 0. λ = 1 takes what really came, with all its chance; λ = 0 trusts the
    critic about all but the next reward.
    Shapes: rewards and values (T,) -> (T,).
    """
    following = np.append(values[1:], 0)
    errors = rewards + gamma * following - values
    advantages = np.empty_like(values)
    later = 0.0
    for step in range(len(errors) - 1, -1, -1):
        later = float(errors[step]) + gamma * gae_lambda * later
        advantages[step] = later
    return advantages


def normalised(parts: Sequence[Array]) -> list[Array]:
    """Give all numbers together mean 0 and variance 1, in whatever parts they are. Parts hold real tokens only."""
    everything = np.concatenate(parts)
    mean = everything.mean(dtype=np.float64)
    std = everything.std(dtype=np.float64)
    return [((part - mean) / (std + 1e-8)).astype(part.dtype) for part in parts]

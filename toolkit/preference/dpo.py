"""Direct preference optimization (Rafailov et al. 2023): learning from pairs without a reward model or sampling."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.functional.preference_loss import preference_loss, preference_loss_backward
from toolkit.models.gpt import GPT
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.preference.examples import Pairs, reply_batch
from toolkit.preference.pair_task import NO_PAIRS, PairSums, PairTask, Share, in_turns, pair_sums
from toolkit.preference.policy import reply_log_probs, reply_log_probs_backward, sums_of_replies
from toolkit.training.optimizer import Adam
from toolkit.training.workers import Workers

# Tokens of the texts whose reference log-probabilities are computed together.
_TOKENS_AT_ONCE = 4096


@dataclass(frozen=True)
class DPOConfig:
    """How a language model learns from pairs directly."""

    beta: float = 1.0  # how dearly the model pays for leaving the reference; the reward is β log(π / π_ref)
    supervised: float = 3.0  # weight of the chosen reply's likelihood beside it; 0: the loss as it was published

    def __post_init__(self) -> None:
        """Raises ConfigError where a setting is out of range."""
        if not 0 < self.beta < math.inf:
            raise ConfigError(f"beta is {self.beta}: it must be a number above 0")
        if not 0 <= self.supervised < math.inf:
            raise ConfigError(f"supervised is {self.supervised}: it must be a number of at least 0")


class DPOTask(PairTask):
    """-log σ(β[(log π_c - log π_ref,c) - (log π_r - log π_ref,r)]) - supervised · log π_c / T,

    log π summed over a reply and its end marker, T the number of tokens of the chosen one. The first part only asks
    that the chosen reply gain on the other, and is content where both become less likely; the second, which is
    supervised fine-tuning, holds the chosen one where it is (Pang et al. 2024, "Iterative reasoning preference
    optimization", section 2).

    reference: what training starts from, and what the model is compared with. What it thinks of all replies is
    computed here, once, by `workers` processes. The first part begins with ln 2 where the model that is trained has no
    dropout, which would make it differ from itself (see `settings_like`).
    """

    def __init__(self, train: Pairs, valid: Pairs, reference: GPT, config: DPOConfig, workers: int = 1):
        super().__init__(train, valid)
        self.config = config
        self.reference = {name: reference_log_probs(reference, pairs, workers) for name, pairs in self.pairs.items()}

    def loss(self, model: GPT, share: Share, tape: Tape) -> PairSums:
        """Sums over the pairs of a share; adds their gradient where the tape keeps. Rewards are β log(π / π_ref)."""
        if len(share.numbers) == 0:
            return NO_PAIRS
        prompts, replies = self.pairs[share.name].sides(share.numbers)
        lengths = np.array([len(reply) for reply in replies])
        log_probs, _ = reply_log_probs(model, reply_batch(prompts, replies), tape)
        reference = self.reference[share.name][share.numbers].reshape(-1)
        of_replies = sums_of_replies(log_probs, lengths)
        ratios = of_replies - reference.astype(log_probs.dtype)
        loss, saved = preference_loss(ratios[0::2], ratios[1::2], self.config.beta)
        likelihood = -float((of_replies[0::2] / lengths[0::2]).sum(dtype=np.float64))  # of the chosen, nats a token
        if tape.keeps:
            dchosen, drejected = preference_loss_backward(1.0, saved)
            dchosen -= (self.config.supervised / lengths[0::2]).astype(dchosen.dtype)
            reply_log_probs_backward(model, np.repeat(in_turns(dchosen, drejected), lengths), tape)
        sums = pair_sums(loss + self.config.supervised * likelihood, ratios * self.config.beta)
        return sums._replace(negative_log_likelihood=likelihood)

    def scores(self, sums: PairSums) -> dict[str, float]:
        """Means over the validation pairs; the likelihood is that of a chosen reply's tokens, in nats."""
        return super().scores(sums) | {"negative_log_likelihood": sums.negative_log_likelihood / sums.tokens}


def reference_log_probs(reference: GPT, pairs: Pairs, workers: int = 1) -> Array:
    """What a model gives the chosen and the rejected reply of every pair, end markers included.  Returns (pairs, 2)."""
    batches = pairs.batches(_TOKENS_AT_ONCE, [0])
    found = np.empty((len(pairs), 2), reference.vector.dtype)
    with Workers(functools.partial(GPT, reference.config), _Reading(pairs), Adam(), workers) as processes:
        processes.model.vector[:] = reference.vector
        shares = [batches[index::workers] for index in range(workers)]
        for share, sums in zip(shares, processes.compute("log_probs", shares), strict=True):
            for numbers, of_batch in zip(share, sums, strict=True):
                found[numbers] = of_batch
    return found


class _Reading:
    """The task of finding log-probabilities."""

    def __init__(self, pairs: Pairs):
        self._pairs = pairs

    def log_probs(self, model: GPT, batches: list[Array], memory: Pool) -> list[Array]:
        """Of the replies of every batch of pairs, (B, 2)."""
        return [self._of_batch(model, numbers, memory) for numbers in batches]

    def _of_batch(self, model: GPT, numbers: Array, memory: Pool) -> Array:
        prompts, replies = self._pairs.sides(numbers)
        log_probs, _ = reply_log_probs(model, reply_batch(prompts, replies), Tape(memory=memory))
        return sums_of_replies(log_probs, [len(reply) for reply in replies]).reshape(-1, 2)

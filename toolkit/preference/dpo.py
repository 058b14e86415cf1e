"""Direct preference optimization (Rafailov et al. 2023): learning from pairs without a reward model or sampling."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit.display import short_repr
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.functional.losses import preference_loss, preference_loss_backward
from toolkit.models.gpt import GPT
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.parallel import in_order
from toolkit.preference.pairs import Pairs, PairSums, PairTask, interleaved, pair_sums
from toolkit.preference.replies import reply_batch, reply_log_probs, sums_of_replies
from toolkit.training.task import Share

# Tokens of the texts whose reference log-probabilities are computed together.
_TOKENS_AT_ONCE = 4096


@dataclass(frozen=True)
class DPOConfig:
    """Settings of learning from pairs directly."""

    beta: float = 1.0  # how dearly the model pays for leaving the reference; the reward is β log(π / π_ref)
    supervised: float = 3.0  # weight of the chosen reply's likelihood beside it; 0: the loss as it was published

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Raise ConfigError where a setting is out of range."""
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

    reference: the model that training starts from, and that the trained one is compared with. The log-probabilities
    that it gives all replies are computed here, once, by `workers` processes. The first part begins with ln 2 where the
    trained model has no dropout, which would make it differ from itself (see `settings_like`).
    """

    def __init__(self, train: Pairs, valid: Pairs, reference: GPT, config: DPOConfig, workers: int = 1):
        super().__init__(train, valid)
        self.config = config
        self.reference = {name: reference_log_probs(reference, pairs, workers) for name, pairs in self.sets.items()}

    def sums(self, model: GPT, share: Share, tape: Tape) -> PairSums:
        """Return sums over the pairs of a share; add their gradient where the tape keeps. Rewards: β log(π / π_ref)."""
        prompts, replies = self.sets[share.name].sides(share.numbers)
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
            model.backward(tape, np.repeat(interleaved(dchosen, drejected), lengths))
        sums = pair_sums(loss + self.config.supervised * likelihood, ratios * self.config.beta)
        return sums._replace(negative_log_likelihood=likelihood)

    def scores(self, sums: PairSums) -> dict[str, float]:
        """Divide the sums by the number of pairs; the likelihood is that of a chosen reply's tokens, in nats."""
        return super().scores(sums) | {"negative_log_likelihood": sums.negative_log_likelihood / sums.tokens}


def reference_log_probs(reference: GPT, pairs: Pairs, workers: int = 1) -> Array:
    """Return the log-probabilities of the chosen and the rejected reply of every pair, end markers included, (B, 2)."""
    batches = pairs.in_order(_TOKENS_AT_ONCE)
    found = np.empty((len(pairs), 2), reference.vector.dtype)
    work = functools.partial(_batch_log_probs, reference, pairs, Pool())
    for numbers, log_probs in zip(batches, in_order(work, batches, workers), strict=True):
        found[numbers] = log_probs
    return found


def _batch_log_probs(reference: GPT, pairs: Pairs, memory: Pool, numbers: Sequence[int]) -> Array:
    prompts, replies = pairs.sides(numbers)
    with threadpool_limits(1):
        log_probs, _ = reply_log_probs(reference, reply_batch(prompts, replies), Tape(memory=memory))
    return sums_of_replies(log_probs, [len(reply) for reply in replies]).reshape(-1, 2)

"""What training on pairs of replies has in common, whichever loss compares their sides."""

from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.preference.examples import Pairs

# Validation needs no gradients and takes fewer and larger batches.
_VALIDATION_TOKENS = 8192


class PairSums(NamedTuple):
    """Sums over pairs. The log and the scores show them divided by the number of pairs, which stands for tokens."""

    loss: float
    negative_log_likelihood: float  # reward model: of the preferences, the loss; DPO: of the chosen replies, a token's
    tokens: int  # pairs
    accuracy: float  # pairs whose chosen reply has the larger reward
    margin: float  # reward of the chosen one less that of the rejected one
    chosen_reward: float
    rejected_reward: float


class Share(NamedTuple):
    """Some pairs of a set: a batch, or what one worker gets of it."""

    name: str  # of the set: "train" or "valid"
    numbers: Array  # (B,) of its pairs


class PairTask:
    """Pairs to train and to validate on. A batch has `tokens_per_batch` tokens of prompts and replies, both sides."""

    def __init__(self, train: Pairs, valid: Pairs):
        self.pairs = {"train": train, "valid": valid}

    def batches(self, epoch: int, tokens_per_batch: int, seed: int) -> list[Share]:
        """The batches of one epoch: the same for the same seed, so that a resumed run sees them again."""
        return [Share("train", numbers) for numbers in self.pairs["train"].batches(tokens_per_batch, [seed, epoch])]

    def validation_batches(self, tokens_per_batch: int) -> list[Share]:
        """Batches that cover all validation pairs once, always the same."""
        found = self.pairs["valid"].batches(max(tokens_per_batch, _VALIDATION_TOKENS), [0])
        return [Share("valid", numbers) for numbers in found]

    def split(self, batch: Share, parts: int) -> list[Share]:
        """The shares of `parts` workers; some may be empty."""
        return [Share(batch.name, part) for part in self.pairs[batch.name].split(batch.numbers, parts)]

    def scores(self, sums: PairSums) -> dict[str, float]:
        """Means over the validation pairs."""
        names = ("loss", "accuracy", "margin", "chosen_reward", "rejected_reward")
        return {name: getattr(sums, name) / sums.tokens for name in names}


NO_PAIRS = PairSums(0.0, 0.0, 0, 0.0, 0.0, 0.0, 0.0)


def pair_sums(loss: float, rewards: Array) -> PairSums:
    """The sums for pairs with these rewards, chosen and rejected in turns.  rewards: (2 B,)."""
    chosen, rejected = rewards[0::2], rewards[1::2]
    better = np.count_nonzero(chosen > rejected)
    chosen_sum, rejected_sum = (float(side.sum(dtype=np.float64)) for side in (chosen, rejected))
    return PairSums(loss, loss, len(chosen), float(better), chosen_sum - rejected_sum, chosen_sum, rejected_sum)


def in_turns(dchosen: Array, drejected: Array) -> Array:
    """Gradients of both sides in the order of the sides.  Shapes: (B,), (B,) -> (2 B,)."""
    return np.stack((dchosen, drejected), axis=1).reshape(-1)

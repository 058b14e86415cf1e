"""Pairs of a better and a worse reply to a prompt, as a task, and reward models, which are trained on them."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from toolkit.data.preferences import Preference, read_preferences
from toolkit.display import short_repr
from toolkit.errors import DataError
from toolkit.functional.arrays import Array
from toolkit.functional.losses import preference_loss, preference_loss_backward
from toolkit.models.reward import RewardModel
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.preference.replies import whole_texts
from toolkit.tokenization.chat_template import ChatTemplate
from toolkit.training.task import Bucketed, Share, Task

_PAIRS_AT_ONCE = 16  # whose rewards are computed together


class PairExample(NamedTuple):
    """A prompt, the reply that was preferred, and the one that was not; each reply with its end marker."""

    prompt: Array  # (P,) ids
    chosen: Array  # (T,) ids
    rejected: Array  # (U,) ids

    __repr__ = short_repr


class Pairs(Bucketed, Sequence[PairExample]):
    """Pairs that can be cut into batches by the tokens that are read for both of their sides.

    max_length: the most tokens of a text that the model reads. Raises DataError where there are none, and for one that
    has an empty part or is too long.
    """

    def __init__(self, pairs: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int]]], max_length: int):
        self._pairs = [PairExample(*(np.asarray(part, np.int32) for part in pair)) for pair in pairs]
        if not self._pairs:
            raise DataError("there are no pairs of replies: preferences need at least one to train and one to validate")
        for number, pair in enumerate(self._pairs, 1):
            longest = len(pair.prompt) + max(len(pair.chosen), len(pair.rejected))
            if not min(map(len, pair)):
                raise DataError(f"pair {number} has an empty prompt or reply: a reply has at least its end marker")
            if longest > max_length:
                raise DataError(f"pair {number} has {longest} tokens, and the model reads {max_length}: shorten it")
        self._max_length = max_length
        # Pairs of sentences are batched by the same function: what counts here stands where it expects a target.
        self.source_lengths = np.zeros(len(self._pairs), np.int32)
        read = [2 * len(prompt) + len(chosen) + len(rejected) for prompt, chosen, rejected in self._pairs]
        self.target_lengths = np.array(read, np.int32)

    @classmethod
    def read(cls, path: Path, template: ChatTemplate, max_length: int, tell: Callable[[str], None]) -> "Pairs":
        """Read the preferences of a file, and tell of those that are longer than the model reads.

        Raises DataError where no other is left, and, naming the place, for text that the tokenizer cannot read.
        """
        pairs = [_encoded(template, preference) for preference in read_preferences(path)]
        fitting = [pair for pair in pairs if len(pair[0]) + max(map(len, pair[1:])) <= max_length]
        if not pairs:
            raise DataError(f"{path} has no pair of replies of which one is better: rank them")
        if left_out := len(pairs) - len(fitting):
            tell(f"{path}: left out {left_out} of {len(pairs)} pairs, longer than the model reads")
        if not fitting:
            raise DataError(f"{path} has no pair of replies that the model can read: give shorter conversations")
        return cls(fitting, max_length)

    def parted(self, every: int) -> tuple["Pairs", "Pairs"]:
        """Take one in `every` prompts out, evenly, with all pairs of it -> the other pairs, and those taken out.

        Of fewer prompts the middle one is taken. Raises DataError where there is only one.
        """
        numbers = {prompt.tobytes(): number for number, prompt in enumerate(self.prompts())}
        if len(numbers) < 2:
            raise DataError("all preferences have the same prompt: give others to validate on")
        every = min(every, len(numbers))
        out = [numbers[pair.prompt.tobytes()] % every == every // 2 for pair in self]
        sides = ([pair for pair, taken in zip(self, out, strict=True) if taken is side] for side in (False, True))
        return tuple(Pairs(side, self._max_length) for side in sides)

    def prompts(self) -> list[Array]:
        """Return every prompt once, in order."""
        return list({pair.prompt.tobytes(): pair.prompt for pair in self}.values())

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: int) -> PairExample:
        return self._pairs[index]

    def sides(self, numbers: Sequence[int]) -> tuple[list[Array], list[Array]]:
        """Return the prompts and replies of some pairs, chosen and rejected interleaved: 2 B of each."""
        chosen = [self._pairs[number] for number in numbers]
        prompts = [pair.prompt for pair in chosen for _ in range(2)]
        return prompts, [reply for pair in chosen for reply in (pair.chosen, pair.rejected)]


def _encoded(template: ChatTemplate, preference: Preference) -> tuple[list[int], list[int], list[int]]:
    try:
        replies = [[*template.content(text), template.end] for text in (preference.chosen, preference.rejected)]
        return template.prompt(preference.prompt), *replies
    except DataError as error:
        raise DataError(f"{preference.place}: {error}") from error


class PairSums(NamedTuple):
    """Sums over pairs. The log and the scores show them divided by the number of pairs, which stands for tokens."""

    loss: float
    negative_log_likelihood: float  # reward model: of the preferences, the loss; DPO: of the chosen replies, a token's
    tokens: int  # pairs
    accuracy: float  # pairs whose chosen reply has the larger reward
    margin: float  # reward of the chosen one less that of the rejected one
    chosen_reward: float
    rejected_reward: float


class PairTask(Task):
    """Pairs to train and to validate on. A batch has `tokens_per_batch` tokens of prompts and replies, both sides."""

    def scores(self, sums: PairSums) -> dict[str, float]:
        """Divide the sums by the number of pairs."""
        names = ("loss", "accuracy", "margin", "chosen_reward", "rejected_reward")
        return {name: getattr(sums, name) / sums.tokens for name in names}


class RewardTask(PairTask):
    """-log σ(r_chosen - r_rejected), r being the value of the last token of prompt and reply: the end marker."""

    def sums(self, model: RewardModel, share: Share, tape: Tape) -> PairSums:
        """Return sums over the pairs of a share; add their gradient where the tape keeps."""
        rewards = model.values(*whole_texts(*self.sets[share.name].sides(share.numbers)), tape)
        loss, saved = preference_loss(rewards[0::2], rewards[1::2])
        if tape.keeps:
            model.backward(interleaved(*preference_loss_backward(1.0, saved)), tape)
        return pair_sums(loss, rewards)


def pair_sums(loss: float, rewards: Array) -> PairSums:
    """Sum up pairs with these rewards, chosen and rejected interleaved.  rewards: (2 B,)."""
    chosen, rejected = rewards[0::2], rewards[1::2]
    better = np.count_nonzero(chosen > rejected)
    chosen_sum, rejected_sum = (float(side.sum(dtype=np.float64)) for side in (chosen, rejected))
    return PairSums(loss, loss, len(chosen), float(better), chosen_sum - rejected_sum, chosen_sum, rejected_sum)


class ByLength(NamedTuple):
    """Shares of pairs about which a judge is right, and the rule that the longer reply is better.

    Shares of 1. Lengths are in tokens; where both are equal, the rule is right half of the time.
    """

    right: float
    rule: float
    shorter: float  # how often the judge is right where the better reply is the shorter one; NaN where none is
    pairs: int
    pairs_shorter: int

    def told(self) -> str:
        """Say all of it in a line."""
        where = f", {100 * self.shorter:.1f} % of the {self.pairs_shorter} whose better reply is the shorter one"
        rule = f"the rule that the longer one is better about {100 * self.rule:.1f} %"
        return (
            f"right about {100 * self.right:.1f} % of {self.pairs} pairs{where if self.pairs_shorter else ''}; {rule}"
        )


def by_length(pairs: Pairs, rewards: Array) -> ByLength:
    """Compare rewards with the lengths of the replies.  rewards: (2 B,), chosen and rejected interleaved."""
    longer = np.array([np.sign(len(each.chosen) - len(each.rejected)) for each in pairs])
    right = rewards[0::2] > rewards[1::2]
    shorter = float(right[longer < 0].mean()) if (longer < 0).any() else math.nan
    rule = float((longer + 1).mean() / 2)
    return ByLength(float(right.mean()), rule, shorter, len(pairs), int((longer < 0).sum()))


def pair_rewards(model: RewardModel, pairs: Pairs) -> Array:
    """Compute the rewards of all pairs, chosen and rejected interleaved.  Shape: (2 B,)."""
    parts, memory = [], Pool()
    for begin in range(0, len(pairs), _PAIRS_AT_ONCE):
        numbers = range(begin, min(begin + _PAIRS_AT_ONCE, len(pairs)))
        parts.append(model.values(*whole_texts(*pairs.sides(numbers)), Tape(memory=memory)).copy())
    return np.concatenate(parts)


def interleaved(dchosen: Array, drejected: Array) -> Array:
    """Put the gradients of both sides into the order of the sides.  Shapes: (B,), (B,) -> (2 B,)."""
    return np.stack((dchosen, drejected), axis=1).reshape(-1)

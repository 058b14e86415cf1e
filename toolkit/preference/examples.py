"""Prompts with replies, as ids: pairs of a better and a worse one, and rows of them that models read.

Ids are written as a model reads them: a prompt begins with the begin mark where the model knows one and ends with what
opens a reply, and a reply ends with its end marker (unless the length limit has cut it off). What these are, a chat
template knows; nothing here does.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.data.batches import epoch_batches, split_batch
from toolkit.errors import DataError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPTBatch
from toolkit.nn.rows import Rows


class PairExample(NamedTuple):
    """A prompt, the reply that was preferred, and the one that was not; each reply with its end marker."""

    prompt: Array  # (P,) ids
    chosen: Array  # (T,) ids
    rejected: Array  # (U,) ids


class Pairs(Sequence[PairExample]):
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
        # Pairs of sentences are batched by the same function: what counts here stands where it expects a target.
        self.source_lengths = np.zeros(len(self._pairs), np.int32)
        read = [2 * len(prompt) + len(chosen) + len(rejected) for prompt, chosen, rejected in self._pairs]
        self.target_lengths = np.array(read, np.int32)

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: int) -> PairExample:
        return self._pairs[index]

    def batches(self, tokens_per_batch: int, seed: Sequence[int]) -> list[Array]:
        """Numbers of the pairs of each batch, every pair once; the same for the same seed."""
        return epoch_batches(self, tokens_per_batch, np.random.default_rng(seed))

    def split(self, numbers: Array, parts: int) -> list[Array]:
        """The pairs of each of `parts` workers."""
        return split_batch(numbers, self, parts)

    def sides(self, numbers: Sequence[int]) -> tuple[list[Array], list[Array]]:
        """Prompts and replies of some pairs, chosen and rejected in turns: 2 B of each."""
        chosen = [self._pairs[number] for number in numbers]
        prompts = [pair.prompt for pair in chosen for _ in range(2)]
        return prompts, [reply for pair in chosen for reply in (pair.chosen, pair.rejected)]


def whole_texts(prompts: Sequence[Array], replies: Sequence[Array]) -> tuple[Array, Rows, Array]:
    """Prompts with their replies, up to the last token: ids (N,), their rows, and the last row of each text, (B,)."""
    rows = Rows(np.array([len(prompt) + len(reply) for prompt, reply in zip(prompts, replies, strict=True)]))
    parts = [part for pair in zip(prompts, replies, strict=True) for part in pair]
    return np.concatenate(parts).astype(np.int64), rows, rows.starts + rows.lengths - 1


def reply_batch(prompts: Sequence[Array], replies: Sequence[Array]) -> GPTBatch:
    """Prompts with replies as rows with teacher forcing, of which those count that predict a token of a reply.

    The first of them is the last row of the prompt. Labels of rows that do not count are what follows there too.
    """
    ids, whole, last = whole_texts(prompts, replies)
    read = np.ones(len(ids), bool)
    read[last] = False
    predicted = np.ones(len(ids), bool)
    predicted[whole.starts] = False
    rows = Rows(whole.lengths - 1)
    replied = np.array([len(reply) for reply in replies])
    ends = rows.starts + rows.lengths
    scored = np.arange(replied.sum()) + np.repeat(ends - np.cumsum(replied), replied)
    return GPTBatch(ids[read], ids[predicted], rows, scored)

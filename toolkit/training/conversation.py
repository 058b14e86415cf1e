"""Conversations as a task: the loss is on the replies and their end markers, and everything else is only read."""

from collections.abc import Sequence

import numpy as np

from toolkit.data.store import RaggedStore
from toolkit.models.gpt import GPT, GPTBatch
from toolkit.models.reward import copy_values
from toolkit.tokenization.special import SPECIAL_TOKENS
from toolkit.training.language import LanguageTask


class ConversationTask(LanguageTask):
    """Conversations to train and to validate on, as `ConversationCorpus` holds them.

    train, valid: their ids. supervised: of each set, which of these ids are to be predicted, 1 or 0, with the same
    offsets. A batch is full of whole conversations, one after the other, and none of them sees another: each is a
    sequence of `Rows` by itself, so that nothing is padded and nothing leaks. Tokens that are counted are supervised
    ones. valid_bytes: UTF-8 bytes that those of the validation set stand for.
    """

    def __init__(
        self,
        train: RaggedStore,
        valid: RaggedStore,
        supervised: tuple[RaggedStore, RaggedStore],
        length: int,
        smoothing: float = 0.0,
        vocab_size: int = 0,
        valid_bytes: int = 0,
    ):
        super().__init__(train, valid, length, True, smoothing, vocab_size, valid_bytes)
        self._made_of = (train, valid, supervised, length, smoothing, vocab_size, valid_bytes)
        self._flags = {name: store.values for name, store in zip(("train", "valid"), supervised, strict=True)}

    def batch(self, name: str, numbers: np.ndarray) -> GPTBatch:
        """Some conversations as rows, of which those count that are followed by a supervised token."""
        texts, flags = self.texts[name], self._flags[name]
        spans = [texts.span(number) for number in numbers]
        follows = np.concatenate([flags[begin + 1 : begin + length + 1] for begin, length in spans])
        return super().batch(name, numbers)._replace(scored=np.flatnonzero(follows))


# How far the first row of a new mark is from the mean of all rows, in standard deviations of these.
_APART = 0.1


def begin_from(source: GPT, marks: Sequence[int], seed: int, model: GPT) -> None:
    """Give a model the values of another, and let it read and write the special ids `marks`.

    An imported model has no rows for marks that it was never taught. They begin near the mean of all tokens of text, so
    that each is as probable as most of these (Hewitt 2021); the seed draws how they differ.
    """
    copy_values(source, model)
    model.permit(marks)
    generator = np.random.default_rng(seed)
    for table in {id(each.table): each.table.data for each in (model.trunk.input.embedding, model.output)}.values():
        new = [mark for mark in marks if not table[mark].any()]
        texts = table[len(SPECIAL_TOKENS) :]
        apart = generator.standard_normal((len(new), table.shape[1])) * _APART
        table[new] = texts.mean(axis=0) + apart * texts.std(axis=0)

"""Conversations as a task: the loss is on the replies and their end markers, and everything else is only read."""

import numpy as np

from toolkit.data.store import RaggedStore
from toolkit.models.gpt import GPTBatch
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

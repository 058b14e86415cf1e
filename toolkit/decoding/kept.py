"""What a model has read, kept from one prompt to the next: of a prompt that begins alike only the rest is read."""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.cache import Cache
from toolkit.decoding.step_weights import StepWeights
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.nn.memory import Pool


class KeptPrompt:
    """The cache of one sequence, and the ids that it holds keys and values of.

    It belongs to one model at a time and to one sequence that is written; where the model has been trained since,
    nothing is kept. Whatever interrupts the reading or writing, what is kept is right.
    """

    def __init__(self, model: GPT):
        self.pool, self.weights = Pool(), StepWeights()
        self.cache = Cache(1, capacity=model.config.max_length, empty=self.pool.empty)
        self.ids: list[int] = []  # what the cache holds; after an interruption it may hold more
        self.reused = 0  # how many tokens of the last prompt were not read again
        self._model = model

    def __reduce__(self) -> tuple[type, tuple]:
        """Pickle and copy the model alone: what was read is read again."""
        return type(self), (self._model,)

    def begin(self, text: Array) -> Array:
        """Keep what is the beginning of a text, forget the rest, and say what remains to be read of the text."""
        if self.weights.renew(self._model.vector):
            self.ids = []
        self.reused = common_prefix(self.ids, text)
        self.ids = self.ids[: self.reused]  # first: they are never more than what the cache holds
        self.cache.keep(np.array([self.reused]))
        return text[self.reused :]

    def add(self, ids: Array) -> None:
        """Tell what has been read now."""
        self.ids += ids.tolist()


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many ids both begin with."""
    shorter = min(len(left), len(right))
    differs = np.asarray(left[:shorter]) != np.asarray(right[:shorter])
    return int(differs.argmax()) if differs.any() else shorter

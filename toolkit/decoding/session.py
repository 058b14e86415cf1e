"""A batch that is being decoded: its model, its caches, and how sequences are dropped and reordered.

Searches know nothing else of a model: they hand in the last token of every sequence and get the logits of the next.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from toolkit.data.collate import source_rows
from toolkit.decoding.cache import Cache
from toolkit.decoding.step import Step
from toolkit.decoding.step_weights import StepWeights
from toolkit.functional.arrays import Array
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS


class Session(Protocol):
    """B texts that outputs belong to, and N sequences that grow by a token a step, N / B for each text."""

    begin: Array  # (N,) the tokens to read first, before anything is written

    def logits(self, ids: Array) -> Array:
        """Read one token of every sequence and score all tokens as the next.  Shapes: (N,) -> (N, V).

        The result is the caller's to change.
        """

    def select(self, texts: Array, sequences: Array) -> None:
        """Text i becomes what texts[i] was, sequence j what sequences[j] was; the others are dropped."""


class Seq2SeqSession(Session):
    """B source sentences, encoded once. It begins with one sequence for each, which has read nothing yet.

    room: how many tokens all sequences of a sentence together will have, as far as is known. weights: copies of this
    model's weights that there are already.
    """

    def __init__(
        self,
        model: Seq2Seq,
        sources: Sequence[Sequence[int]],
        pool: Pool,
        room: int = 32,
        weights: StepWeights | None = None,
    ):
        tape = Tape(memory=pool)
        ids, rows = source_rows(sources)
        memory = model.encode(ids, rows, tape)
        self._cache = Cache(len(sources), rows, room, tape.empty)
        for block in model.decoder:
            block.cross_attention.remember(memory, self._cache, tape)
        self._step = Step(model, self._cache, weights or StepWeights(), tape)
        self.begin = np.full(len(sources), BOS)

    def logits(self, ids: Array) -> Array:
        return self._step.logits(ids)

    def select(self, texts: Array, sequences: Array) -> None:
        self._cache.select(texts, sequences)


def fill_holes(live: Array) -> Array:
    """Who stays, in the order that moves the fewest: the last ones take the places of those that leave.

    Shapes: (B,) of bool -> indices, as many as are live.
    """
    count = np.count_nonzero(live)
    order = np.arange(count)
    if count == len(live):
        return order
    order[~live[:count]] = count + np.flatnonzero(live[count:])
    return order

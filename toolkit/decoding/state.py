"""Decoder states: a batch that is being decoded, its cache, and the prefix cache between prompts.

Searches know nothing else of a model: they hand in the last token of every sequence and get the logits of the next.
"""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.cache import Cache
from toolkit.decoding.step import Step
from toolkit.decoding.weights import PackedWeights
from toolkit.display import short_repr
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq, source_rows
from toolkit.nn.memory import Pool
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS

# Prompts are read in pieces of about this many tokens, all prompts together: large enough for fast products, and small
# enough that activations need less memory than the cache.
_ROWS_AT_ONCE = 2048

# Recording a step takes about as long as multiplying so many parameters with one more row.
_RECORDING = 30_000_000


class DecoderState:
    """B texts that outputs belong to, and N sequences that grow by a token a step, N / B for each text.

    begin: (N,) the tokens to read first, before anything is written.
    """

    begin: Array

    def __init__(self, model: Seq2Seq | GPT, cache: Cache, packed: PackedWeights | None, pool: Pool):
        self._cache = cache
        self._step = Step(model, cache, packed or PackedWeights(), pool)
        self._parameters, self._wasted = model.parameter_count, 0  # multiplications

    def logits(self, ids: Array) -> Array:
        """Read one token of every sequence and score all tokens as the next, (N,) -> (N, V), the caller's to change."""
        return self._step.logits(ids)

    def select(self, texts: Array, sequences: Array) -> None:
        """Put the old text texts[i] in place i, and the old sequence sequences[j] in place j; drop the others."""
        self._cache.select(texts, sequences)

    def leaving_pays(self, unused: int) -> bool:
        """Count rows that a step reads for nothing; tell if they have cost as much by now as a recording without them.

        Who lets them go then pays at most twice what the best moment, which nobody knows before, would have cost.
        """
        self._wasted += unused * self._parameters
        pays = self._wasted > _RECORDING
        self._wasted *= not pays
        return pays


class Seq2SeqState(DecoderState):
    """B source sentences, encoded once. It begins with one sequence for each, which has read nothing yet.

    room: the expected number of tokens of all sequences of a sentence together.
    """

    def __init__(
        self,
        model: Seq2Seq,
        sources: Sequence[Sequence[int]],
        pool: Pool,
        room: int = 32,
        packed: PackedWeights | None = None,
    ):
        self.model, self._pool = model, pool
        ids, rows = source_rows(sources)
        room = room if len(sources) > 1 else 1 << room.bit_length()  # for longer ones to come
        super().__init__(model, Cache(len(sources), rows, room, pool.empty), packed, pool)
        self._read(ids, rows)

    def begin_again(self, sources: Sequence[Sequence[int]], room: int) -> bool:
        """Take other sentences for the same memory and recording; returns False if they do not fit."""
        ids, rows = source_rows(sources)
        if fits := self._cache.begin_again(rows, room):
            self._wasted = 0
            self._read(ids, rows)
        return fits

    def _read(self, ids: Array, rows: Rows) -> None:
        tape = Tape(memory=self._pool)
        memory = self.model.encode(ids, rows, tape)
        for block in self.model.decoder.blocks:
            block.cross_attention.layer.remember(memory, self._cache, tape)
        self.begin = np.full(len(rows.lengths), BOS)


class PrefixCache:
    """Keep the keys and values of one prompt, and compute only what follows the common prefix of the next.

    It belongs to one model and to one sequence that is written; where the model has been trained since, it is emptied.
    Whatever interrupts the reading or writing, its contents are right.
    """

    __repr__ = short_repr

    def __init__(self, model: GPT):
        self.pool, self.packed = Pool(), PackedWeights()
        self.cache = Cache(1, capacity=model.config.max_length, empty=self.pool.empty)
        self.ids: list[int] = []  # the contents of the cache; after an interruption it may hold more
        self.reused = 0  # the number of tokens of the last prompt that were not read again
        self._model = model

    def __reduce__(self) -> tuple[type, tuple]:
        """Pickle and copy the model alone: the prompt is read again."""
        return type(self), (self._model,)

    def begin(self, text: Array) -> Array:
        """Keep the common prefix with a text, forget the rest, and return the part of the text that is yet to read."""
        if self.packed.renew(self._model):
            self.ids = []
        self.reused = common_prefix(self.ids, text)
        self.ids = self.ids[: self.reused]  # first: they are never more than what the cache holds
        self.cache.keep(np.array([self.reused]))
        return text[self.reused :]

    def add(self, ids: Array) -> None:
        """Append ids that the model has read now."""
        self.ids += ids.tolist()


class GPTState(DecoderState):
    """B prompts, and N = B · copies sequences that continue them, those of a prompt next to each other.

    A prompt is read once, whatever the number of its copies; unequal prompts are read together, as rows. With `slide`,
    a sequence whose context is full forgets all but its last half, which it reads again: positions begin at 0 then, for
    every kind of position. Without, no sequence may exceed the context. new_tokens: the most that each will write, as
    far as is known. prefix_cache: of an earlier prompt, for one that is continued once and without sliding; it is
    extended by all that is read now.
    """

    def __init__(
        self,
        model: GPT,
        prompts: Sequence[Sequence[int]],
        pool: Pool,
        copies: int = 1,
        slide: bool = False,
        new_tokens: int = 0,
        packed: PackedWeights | None = None,
        prefix_cache: PrefixCache | None = None,
    ):
        self._model, self._tape, self._prefix_cache = model, Tape(memory=pool), prefix_cache
        self._context = model.config.max_length
        windows = [np.asarray(each, np.int64)[-window_length(len(each), self._context) :] for each in prompts]
        longest = max(map(len, windows), default=0) + new_tokens
        own = Cache(len(windows), capacity=min(longest, self._context), empty=self._tape.empty)
        super().__init__(model, prefix_cache.cache if prefix_cache else own, packed, pool)
        self._seen = np.zeros((len(windows), self._context), np.int64) if slide else None
        texts = [window[:-1] for window in windows]
        self._read([prefix_cache.begin(texts[0])] if prefix_cache else texts)
        self.begin = np.array([window[-1] for window in windows], np.int64).repeat(copies)
        if copies > 1:
            every = np.arange(len(windows)).repeat(copies)
            self.select(every, every)

    def logits(self, ids: Array) -> Array:
        if self._seen is not None:
            self._slide()
            self._seen[np.arange(len(ids)), self._cache.lengths] = ids
        logits = super().logits(ids)
        if self._prefix_cache:
            self._prefix_cache.add(ids)
        return logits

    def select(self, texts: Array, sequences: Array) -> None:
        super().select(texts, sequences)
        if self._seen is not None:
            self._seen = self._seen[sequences]

    def leaving_pays(self, unused: int) -> bool:  # or a sequence has no room for another token
        return super().leaving_pays(unused) or (self._seen is None and self._cache.longest >= self._context)

    def _slide(self) -> None:
        """Make room for one more token in sequences whose context is full."""
        full = self._cache.lengths == self._context
        if full.any():
            kept = max(self._context // 2, 1) - 1  # the token that comes is the last of its half
            tails = self._seen[:, self._context - kept :]
            self._cache.forget(full)
            self._read([tail if is_full else tail[:0] for tail, is_full in zip(tails, full, strict=True)])

    def _read(self, texts: Sequence[Array]) -> None:
        """Add texts to the cache, one for each sequence; any of them may be empty."""
        remaining = np.array([len(text) for text in texts], np.int64)
        step = max(_ROWS_AT_ONCE // max(np.count_nonzero(remaining), 1), 1)
        for begin in range(0, remaining.max(initial=0), step):
            pieces = [text[begin : begin + step] for text in texts]
            if self._seen is not None:
                for row, length, piece in zip(self._seen, self._cache.lengths, pieces, strict=True):
                    row[length : length + len(piece)] = piece
            ids, lengths = np.concatenate(pieces), np.array([len(piece) for piece in pieces], np.int64)
            self._model.read(ids, self._cache.rows(lengths), self._tape)
            self._cache.advance(lengths)
            if self._prefix_cache:
                self._prefix_cache.add(ids)


def window_length(count: int, context: int) -> int:
    """Count the last tokens of a text of `count` tokens that a sliding model sees.

    All of them up to the context. Where one more comes, the window is cut to half a context, and grows again.
    """
    if count <= context:
        return count
    half = max(context // 2, 1)
    return half + (count - context - 1) % (context + 1 - half)


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Count the ids that both begin with."""
    shorter = min(len(left), len(right))
    differs = np.asarray(left[:shorter]) != np.asarray(right[:shorter])
    return int(differs.argmax()) if differs.any() else shorter


def fill_holes(live: Array) -> Array:
    """Order the rows that stay so that the fewest move: the last ones take the places of those that leave.

    Shapes: (B,) of bool -> indices, one for each live row.
    """
    count = np.count_nonzero(live)
    order = np.arange(count)
    if count == len(live):
        return order
    order[~live[:count]] = count + np.flatnonzero(live[count:])
    return order

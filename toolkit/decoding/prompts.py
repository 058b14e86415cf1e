"""Prompts of a decoder-only model: read at once, continued over the KV cache, and what happens past the context."""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.cache import Cache
from toolkit.decoding.kept import KeptPrompt
from toolkit.decoding.session import Session
from toolkit.decoding.step import Step
from toolkit.decoding.step_weights import StepWeights
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape

# Prompts are read in pieces of about so many tokens, all prompts together: enough for the products to be large, and
# little enough that activations need less memory than the cache.
_ROWS_AT_ONCE = 2048


def window_length(count: int, context: int) -> int:
    """How many of a text's last tokens the model sees when it reads the last of `count`, sliding.

    All of them up to the context. Where one more comes, the window is cut to half a context, and grows again.
    """
    if count <= context:
        return count
    half = max(context // 2, 1)
    return half + (count - context - 1) % (context + 1 - half)


class PromptSession(Session):
    """B prompts, and N = B · copies sequences that continue them, those of a prompt next to each other.

    A prompt is read once, whatever the number of its copies; unequal prompts are read together, as rows. With `slide`,
    a sequence whose context is full forgets what it has read but for the last half, which it reads again: positions
    begin at 0 then, for every kind of position. Without, nobody may read more than the context. new_tokens: how many
    each will write at most, as far as is known. weights: copies of this model's weights that there are already.
    kept: what was read of an earlier prompt, for one that is continued once and without sliding; it is told what is
    read now.
    """

    def __init__(
        self,
        model: GPT,
        prompts: Sequence[Sequence[int]],
        pool: Pool,
        copies: int = 1,
        slide: bool = False,
        new_tokens: int = 0,
        weights: StepWeights | None = None,
        kept: KeptPrompt | None = None,
    ):
        self._model, self._tape, self._kept = model, Tape(memory=pool), kept
        self._context = model.config.max_length
        windows = [np.asarray(each, np.int64)[-window_length(len(each), self._context) :] for each in prompts]
        longest = max(map(len, windows), default=0) + new_tokens
        own = Cache(len(windows), capacity=min(longest, self._context), empty=self._tape.empty)
        self._cache = own if kept is None else kept.cache
        self._step = Step(model, self._cache, weights or StepWeights(), self._tape)
        self._seen = np.zeros((len(windows), self._context), np.int64) if slide else None
        texts = [window[:-1] for window in windows]
        self._read(texts if kept is None else [kept.begin(texts[0])])
        self.begin = np.array([window[-1] for window in windows], np.int64).repeat(copies)
        if copies > 1:
            every = np.arange(len(windows)).repeat(copies)
            self.select(every, every)

    def logits(self, ids: Array) -> Array:
        if self._seen is not None:
            self._slide()
            self._seen[np.arange(len(ids)), self._cache.lengths] = ids
        logits = self._step.logits(ids)
        if self._kept is not None:
            self._kept.add(ids)
        return logits

    def select(self, texts: Array, sequences: Array) -> None:
        self._cache.select(texts, sequences)
        if self._seen is not None:
            self._seen = self._seen[sequences]

    def _forward(self, ids: Array, lengths: Array) -> Array:
        """Read the next tokens of every sequence, `lengths` of them.  Shapes: (N,) -> (N, D)."""
        x = self._model.read(ids, self._cache.rows(lengths), self._tape)
        self._cache.advance(lengths)
        return x

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
            ids = np.concatenate(pieces)
            self._forward(ids, np.array([len(piece) for piece in pieces], np.int64))
            if self._kept is not None:
                self._kept.add(ids)

"""Perplexity of a text under a language model: one deterministic pass in which every token is predicted once."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT, text_batch
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.special import BOS, EOS

# Windows are read together until they have this many tokens: a few tens of MB for a model of a hundred million
# parameters.
_BATCH_TOKENS = 2048


@dataclass(frozen=True)
class Perplexity:
    """The probability of a text under a model, in the usual measures.

    Perplexities compare models of one tokenizer. Bits per byte compare any: they are what the model would need to
    store the text, per byte of it in UTF-8 (normal form C), special tokens between texts included. A model that is used
    by ids has no text: None, and no bytes.
    """

    loss: float  # nats per token: the mean of -log p(token | those before it)
    perplexity: float  # exp(loss)
    bits_per_byte: float | None  # loss · tokens / (ln 2 · bytes)
    tokens: int  # that were predicted
    bytes: int  # of text that they stand for


def perplexity(negative_log_likelihood: float, tokens: int, size: int) -> Perplexity:
    """Compute the measures from a sum over `tokens` tokens, in nats, that stand for `size` bytes, 0 if not for text."""
    loss = negative_log_likelihood / tokens
    power = math.exp(loss) if loss < math.log(np.finfo(float).max) else math.inf
    return Perplexity(loss, power, negative_log_likelihood / (math.log(2) * size) if size else None, tokens, size)


class Window(NamedTuple):
    """At most T + 1 consecutive ids of one text. Those after the first are to be predicted, each from all before it."""

    ids: Array
    known: int = 0  # this many predictions were made in the window before: what they read is context alone


def pooled(parts: Iterable[Perplexity]) -> Perplexity:
    """Compute the measures of all tokens of several texts together."""
    parts = list(parts)
    tokens, size = sum(part.tokens for part in parts), sum(part.bytes for part in parts)
    return perplexity(math.fsum(part.loss * part.tokens for part in parts), tokens, size)


@dataclass
class MarkedTexts:
    """The ids of texts that come in pieces, with BOS and EOS of each, and the bytes of what has been read so far.

    pieces: text in normal form C, and whether a document ends with it. begin, end: whether documents have BOS and EOS.
    separator: bytes between two documents, for which an EOS stands.
    """

    pieces: Iterable[tuple[str, bool]]
    tokenizer: Tokenizer
    begin: bool
    end: bool
    separator: int = 0
    bytes: int = 0

    def __iter__(self) -> Iterator[tuple[list[int], bool]]:
        """Yield the ids of every piece, and whether they end a document."""
        begins = True
        for text, ends in self.pieces:
            ids = self.tokenizer.encode(text)
            self.bytes += len(text.encode()) + (self.separator if ends else 0)
            yield [BOS] * (begins and self.begin) + ids + [EOS] * (ends and self.end), ends
            begins = ends


def windows(parts: Iterable[tuple[Sequence[int], bool]], length: int, overlap: int = 0) -> Iterator[Window]:
    """Cut texts, whose ids come in parts, into windows of which a model of context `length` reads each at once.

    parts: ids, and whether they end a text. overlap: how many tokens of a window the next one reads again, so that
    none of its predictions but the first window's has less context than that. Every token of a text but the first is
    predicted once, whatever the overlap is; with none, fewest tokens are read.

    Raises ConfigError for an overlap that leaves a window nothing new.
    """
    if not 0 <= overlap < length:
        raise ConfigError(f"overlap is {overlap}: it must be at least 0 and below the model's context, {length} tokens")
    nothing = np.empty(0, np.int64)
    held, known = nothing, 0
    for ids, ends in chain(parts, [((), True)]):
        held = np.concatenate((held, np.asarray(ids, np.int64)))
        while len(held) > length:
            yield Window(held[: length + 1], known)
            held, known = held[length - overlap :], overlap
        if ends:
            if len(held) > known + 1:
                yield Window(held, known)
            held, known = nothing, 0


def batches(cut: Iterable[Window]) -> Iterator[list[Window]]:
    """Yield the windows that are read together. Memory does not grow with the text."""
    batch: list[Window] = []
    size = 0
    for window in cut:
        if batch and size + len(window.ids) > _BATCH_TOKENS:
            yield batch
            batch, size = [], 0
        batch.append(window)
        size += len(window.ids)
    if batch:
        yield batch


class WindowLosses:
    """Reads batches of windows, in whichever process.  Pickled, it is its model."""

    def __init__(self, model: GPT):
        self._model, self._tape = model, Tape(memory=Pool())

    def __reduce__(self) -> tuple:
        return WindowLosses, (self._model,)

    def __call__(self, batch: list[Window]) -> tuple[float, int]:
        """Sum over the windows' new predictions: nats, and their number."""
        batch = sorted(batch, key=lambda window: len(window.ids))  # equal lengths together: see Rows.spans
        inputs, labels, rows, _ = text_batch([window.ids for window in batch])
        x = self._model.read(inputs, rows, self._tape)
        new = rows.positions >= np.repeat([window.known for window in batch], rows.lengths)
        if not new.all():
            x, labels = x[new], labels[new]
        sums = self._model.output.loss(x, labels, self._tape)
        return sums.negative_log_likelihood, sums.tokens

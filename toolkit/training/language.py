"""Next-token prediction as a task: windows of one long stream of tokens, or whole documents.

A mask says which of their tokens are predicted: the replies of a conversation, or what follows the first line of a
document.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from toolkit.data.store import RaggedStore
from toolkit.errors import ConfigError, DataError
from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import LossSums
from toolkit.models.gpt import GPT, GPTBatch, text_batch
from toolkit.models.reward import copy_values
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS
from toolkit.training.task import Bucketed, Lazy, Share, Task, label_prior


class Windows:
    """Text i is the window of `length` tokens that begins at token i, whatever documents lie in it.

    An epoch has as many tokens as the stream, but its windows are drawn independently (as nanoGPT's are), so that it
    needs no memory however long the stream is. Raises DataError for a stream of less than two tokens.
    """

    def __init__(self, stream: Array, length: int):
        if len(stream) < 2:
            raise DataError("a text of less than two tokens has nothing to predict: give more text")
        self.stream, self.length = stream, min(length, len(stream) - 1)

    def span(self, number: int) -> tuple[int, int]:
        """Return where the text begins, and how many tokens are predicted in it."""
        return number, min(self.length, len(self.stream) - 1 - number)

    def batches(self, tokens_per_batch: int, rng: np.random.Generator) -> Sequence[Array]:
        count = max(1, tokens_per_batch // self.length)
        seeds, places = rng.integers(1 << 62, size=2).tolist(), len(self.stream) - self.length
        batches = max(1, len(self.stream) // (count * self.length))
        return Lazy(batches, lambda index: np.random.default_rng([*seeds, index]).integers(places, size=count))

    def in_order(self, tokens_per_batch: int) -> list[Array]:
        begins = np.arange(0, len(self.stream) - 1, self.length)
        count = max(1, tokens_per_batch // self.length)
        return [begins[first : first + count] for first in range(0, len(begins), count)]

    def split(self, numbers: Array, parts: int) -> list[Array]:
        return np.array_split(numbers, parts)

    def shards(self, numbers: Array, parts: int) -> list[Array]:
        # Spread: where there are fewer texts than shards, neighbours, which a worker gets, have not all of them.
        bounds = [len(numbers) * part // parts for part in range(parts + 1)]
        return [numbers[begin:end] for begin, end in pairwise(bounds)]


class Documents(Bucketed):
    """Text i is a document, or a piece of one that is longer than `length`: no text has parts of two documents.

    Only where its tokens lie is kept, 12 bytes a text. Raises DataError where no document has two tokens.
    """

    def __init__(self, store: RaggedStore, length: int):
        self.stream = store.values
        tokens = np.diff(store.offsets) - 1  # predicted ones
        pieces = -(-np.maximum(tokens, 0) // length)
        first = np.repeat(np.cumsum(pieces) - pieces, pieces)
        place = (np.arange(len(first)) - first) * length  # within the document
        self.begins = np.repeat(store.offsets[:-1], pieces) + place
        self.lengths = np.minimum(np.repeat(tokens, pieces) - place, length).astype(np.int32)
        if len(self.begins) == 0:
            raise DataError("no document has two tokens, so there is nothing to predict: give more text")

    def __len__(self) -> int:
        return len(self.begins)

    @cached_property
    def source_lengths(self) -> Array:
        """Zeros: texts are batched by the function for pairs, as pairs whose sources are empty."""
        return np.zeros(len(self), np.int32)

    @property
    def target_lengths(self) -> Array:
        """Predicted tokens but the last, which stands where a pair has its end mark."""
        return self.lengths - 1

    def span(self, number: int) -> tuple[int, int]:
        """Return where the text begins, and how many tokens are predicted in it."""
        return int(self.begins[number]), int(self.lengths[number])


# Chooses the tokens that are predicted: (name of the set, where in its stream the tokens begin, their ids (T,)) -> for
# each of them whether the one after it counts, (T,) bool.
Mask = Callable[[str, int, Array], Array]


class ReplyMask:
    """Counts what is stored as supervised, 1 or 0 for each token of a set, with the offsets of its ids."""

    def __init__(self, train: RaggedStore, valid: RaggedStore):
        self._stores = {"train": train, "valid": valid}

    def __call__(self, name: str, begin: int, ids: Array) -> Array:
        return self._stores[name].values[begin + 1 : begin + len(ids) + 1] != 0


class FirstLineMask:
    """Counts all but the first line of a document of several lines, and a document of one line in full.

    A prompt that nobody can predict, such as the sentence to be translated, has the largest loss in a text and so the
    largest gradient; without it, updates are about what can be learned.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._breaks = np.array(["\n" in tokenizer.piece(index) for index in range(tokenizer.vocab_size)])

    def __call__(self, name: str, begin: int, ids: Array) -> Array:
        ends = np.flatnonzero(self._breaks[ids])
        is_piece = ids[0] != BOS  # of a document longer than the context, whose first line is not here
        return np.arange(len(ids)) >= (0 if is_piece or len(ends) == 0 else ends[0])


class LanguageTask(Task):
    """Training and validation texts, and the loss of any share of them.

    length: T, tokens that are predicted in one text at most. whole: texts are documents (see `Documents`), not windows
    of the stream. mask: which tokens count (None: all). valid_bytes: UTF-8 bytes that the validation tokens which count
    stand for; 0 for unknown. Every text is a sequence of `Rows` by itself: nothing is padded, and none sees another.
    """

    def __init__(
        self,
        train: RaggedStore,
        valid: RaggedStore,
        length: int,
        whole: bool = True,
        smoothing: float = 0.0,
        vocab_size: int = 0,
        valid_bytes: int = 0,
        mask: Mask | None = None,
    ):
        self._made_of = (train, valid, length, whole, smoothing, vocab_size, valid_bytes, mask)
        prior = None
        if smoothing:
            if not vocab_size:
                raise ConfigError("label smoothing needs the size of the vocabulary")
            occurs = np.arange(vocab_size) >= len(SPECIAL_TOKENS)
            occurs[EOS] = True  # the only special token that a text is labelled with
            prior = label_prior(occurs)
        sets = (Documents(store, length) if whole else Windows(store.values, length) for store in (train, valid))
        super().__init__(*sets, smoothing, prior)
        self.mask, self.valid_bytes = mask, valid_bytes

    def __reduce__(self) -> tuple:
        """Pickle it as its stores, which are pickled as their paths: the tokens stay on the disk."""
        return type(self), self._made_of

    def batch(self, share: Share) -> GPTBatch:
        """Return some texts of a set as rows, and which of them count."""
        texts = self.sets[share.name]
        spans = [texts.span(number) for number in share.numbers]
        batch = text_batch([texts.stream[begin : begin + length + 1] for begin, length in spans])
        if self.mask is None:
            return batch
        counts = [self.mask(share.name, begin, texts.stream[begin : begin + length]) for begin, length in spans]
        return batch._replace(scored=np.flatnonzero(np.concatenate(counts)))

    def scores(self, sums: LossSums) -> dict[str, float]:
        """Turn sums over the validation texts into loss, perplexity and, where bytes are known, bits per byte."""
        scores = super().scores(sums)
        if self.valid_bytes:
            scores["bits_per_byte"] = sums.negative_log_likelihood / math.log(2) / self.valid_bytes
        return scores


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

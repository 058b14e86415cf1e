"""Next-token prediction as a task: random windows of one long stream of tokens, or whole documents."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from toolkit.data.batches import epoch_batches, split_batch
from toolkit.data.collate import text_batch
from toolkit.data.store import RaggedStore
from toolkit.errors import ConfigError, DataError
from toolkit.functional.output_loss import LossSums
from toolkit.models.gpt import GPT, GPTBatch
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import EOS, SPECIAL_TOKENS
from toolkit.training.progress import loss_scores
from toolkit.training.workers import add_sums

# Validation needs no gradients and little memory, and takes fewer and larger batches than training.
_VALIDATION_TOKENS = 8192


class Share(NamedTuple):
    """Some texts of a set: a batch, or what one worker gets of it."""

    name: str  # of the set: "train" or "valid"
    texts: np.ndarray  # (B,) their numbers


class Texts(Protocol):
    """Numbered texts of a stream of tokens; text i is its tokens[begin : begin + length + 1] for span(i)."""

    stream: np.ndarray

    def span(self, number: int) -> tuple[int, int]:
        """Where the text begins, and how many tokens are predicted in it."""

    def batches(self, tokens_per_batch: int, rng: np.random.Generator) -> Sequence[np.ndarray]:
        """Numbers of the texts of each batch of an epoch."""

    def in_order(self, tokens_per_batch: int) -> Sequence[np.ndarray]:
        """Batches of texts that together predict every token once, always the same."""

    def split(self, numbers: np.ndarray, parts: int) -> list[np.ndarray]:
        """The texts of each of `parts` workers."""


class Windows:
    """Text i is the window of `length` tokens that begins at token i, whatever documents lie in it.

    An epoch has as many tokens as the stream, but its windows are drawn independently (as nanoGPT's are), so that it
    needs no memory however long the stream is. Raises DataError for a stream of less than two tokens.
    """

    def __init__(self, stream: np.ndarray, length: int):
        if len(stream) < 2:
            raise DataError("a text of less than two tokens has nothing to predict: give more text")
        self.stream, self.length = stream, min(length, len(stream) - 1)

    def span(self, number: int) -> tuple[int, int]:
        return number, min(self.length, len(self.stream) - 1 - number)

    def batches(self, tokens_per_batch: int, rng: np.random.Generator) -> "DrawnWindows":
        count = max(1, tokens_per_batch // self.length)
        seeds = rng.integers(1 << 62, size=2)
        return DrawnWindows(seeds.tolist(), max(1, len(self.stream) // (count * self.length)), count, self._places)

    @property
    def _places(self) -> int:
        return len(self.stream) - self.length

    def in_order(self, tokens_per_batch: int) -> list[np.ndarray]:
        begins = np.arange(0, len(self.stream) - 1, self.length)
        count = max(1, tokens_per_batch // self.length)
        return [begins[first : first + count] for first in range(0, len(begins), count)]

    def split(self, numbers: np.ndarray, parts: int) -> list[np.ndarray]:
        return np.array_split(numbers, parts)


class DrawnWindows(Sequence[np.ndarray]):
    """`batches` batches of `count` windows, each drawn when it is asked for: the same seeds draw the same."""

    def __init__(self, seeds: list[int], batches: int, count: int, places: int):
        self._seeds, self._batches, self._count, self._places = seeds, batches, count, places

    def __len__(self) -> int:
        return self._batches

    def __getitem__(self, index: int) -> np.ndarray:
        if not 0 <= index < self._batches:
            raise IndexError(index)
        return np.random.default_rng([*self._seeds, index]).integers(self._places, size=self._count)


class Documents:
    """Text i is a document, or a piece of one that is longer than `length`: no text has parts of two documents.

    It is known by where its tokens lie, 12 bytes a text. Raises DataError where no document has two tokens.
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
    def source_lengths(self) -> np.ndarray:
        """As pairs whose sources are empty, texts are batched by the same function as pairs."""
        return np.zeros(len(self), np.int32)

    @property
    def target_lengths(self) -> np.ndarray:
        return self.lengths - 1  # the last label stands where a pair has its end mark

    def span(self, number: int) -> tuple[int, int]:
        return int(self.begins[number]), int(self.lengths[number])

    def batches(self, tokens_per_batch: int, rng: np.random.Generator) -> list[np.ndarray]:
        return epoch_batches(self, tokens_per_batch, rng)

    def in_order(self, tokens_per_batch: int) -> list[np.ndarray]:
        return epoch_batches(self, tokens_per_batch, np.random.default_rng(0))

    def split(self, numbers: np.ndarray, parts: int) -> list[np.ndarray]:
        return split_batch(numbers, self, parts)


class LanguageTask:
    """Training and validation texts, and the loss of any share of them.

    length: T, tokens that are predicted in one text at most. whole: texts are documents (see `Documents`), not windows
    of the stream. valid_bytes: UTF-8 bytes that the validation tokens stand for.
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
    ):
        self._made_of = (train, valid, length, whole, smoothing, vocab_size, valid_bytes)
        sets = {"train": train, "valid": valid}
        make = Documents if whole else lambda store, length: Windows(store.values, length)
        self.texts: dict[str, Texts] = {name: make(store, length) for name, store in sets.items()}
        self.smoothing, self.valid_bytes = smoothing, valid_bytes
        if smoothing and not vocab_size:
            raise ConfigError("label smoothing needs the size of the vocabulary")
        self.prior = _label_prior(vocab_size) if smoothing else None

    def __reduce__(self) -> tuple:
        """Pickled as its stores, which are pickled as their paths: the tokens stay on the disk."""
        return type(self), self._made_of

    def batches(self, epoch: int, tokens_per_batch: int, seed: int) -> "Shares":
        """The batches of one epoch: the same for the same seed, so that a resumed run sees them again."""
        rng = np.random.default_rng([seed, epoch])
        return Shares("train", self.texts["train"].batches(tokens_per_batch, rng))

    def validation_batches(self, tokens_per_batch: int) -> "Shares":
        """Batches in which every validation token is predicted once (but the first of a stream), always the same."""
        return Shares("valid", self.texts["valid"].in_order(max(tokens_per_batch, _VALIDATION_TOKENS)))

    def split(self, batch: Share, parts: int) -> list[Share]:
        """The shares of `parts` workers, balanced by tokens; some may be empty."""
        name, numbers = Share(*batch)
        return [Share(name, part) for part in self.texts[name].split(numbers, parts)]

    def loss(self, model: GPT, share: Share, tape: Tape) -> LossSums:
        """Loss sums of a share; adds its gradient where the tape keeps. Validation is not smoothed."""
        name, numbers = Share(*share)
        if len(numbers) == 0:
            return LossSums(0.0, 0.0, 0)
        batch = self.batch(name, numbers)
        sums = model.loss(batch, tape, self.smoothing if name == "train" else 0.0, self.prior)
        if tape.keeps:
            model.backward(tape)
        return sums

    def batch(self, name: str, numbers: np.ndarray) -> GPTBatch:
        """Some texts of a set as rows."""
        texts = self.texts[name]
        spans = [texts.span(number) for number in numbers]
        return text_batch([texts.stream[begin : begin + length + 1] for begin, length in spans])

    def evaluated(self, model: GPT) -> dict[str, float]:
        """The scores of a full pass in this process."""
        memory = Pool()
        batches = self.validation_batches(_VALIDATION_TOKENS)
        return self.scores(add_sums([self.loss(model, batch, Tape(memory=memory)) for batch in batches]))

    def scores(self, sums: LossSums) -> dict[str, float]:
        """What a full pass over the validation texts says of a model."""
        scores = loss_scores(sums)
        if self.valid_bytes:
            scores["bits_per_byte"] = sums.negative_log_likelihood / math.log(2) / self.valid_bytes
        return scores


class Shares(Sequence[Share]):
    """Batches of numbers as shares of a set."""

    def __init__(self, name: str, batches: Sequence[np.ndarray]):
        self._name, self._batches = name, batches

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> Share:
        return Share(self._name, self._batches[index])


def _label_prior(vocab_size: int) -> np.ndarray:
    """Equal shares for the end mark and all tokens of text, none for the other special ones.  Shapes: -> (V,)."""
    occurs = np.arange(vocab_size) >= len(SPECIAL_TOKENS)
    occurs[EOS] = True
    return (occurs / occurs.sum()).astype(np.float32)

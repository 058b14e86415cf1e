"""What the tokenizers share that take a text symbol by symbol, so that there is only one way to cut it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np

from toolkit.errors import ConfigError
from toolkit.tokenization.special import CONTROL_IDS, SPECIAL_TOKENS, UNK
from toolkit.tokenization.surface import LOST

FIRST_SYMBOL = len(SPECIAL_TOKENS)

_IS_CONTROL = np.isin(np.arange(FIRST_SYMBOL + 1), sorted(CONTROL_IDS))  # the last entry is for all symbols


class SymbolTokenizer(ABC):
    """Ids: 16 special tokens, then the symbols. The subclasses say what a symbol is."""

    @property
    def source(self) -> "SymbolTokenizer":
        """What reads the texts that a translator translates."""
        return self

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Number of ids, the special ones included."""

    @abstractmethod
    def encode_array(self, text: str) -> np.ndarray:
        """The ids of `text` in normal form C, (N,) uint16: as `encode`, for texts of many megabytes."""

    def encode(self, text: str) -> list[int]:
        """The ids of `text` in normal form C, without begin or end marker. Raises DataError as `encode_array`."""
        return self.encode_array(text).tolist()

    def encode_batch(
        self, texts: Iterable[str], alpha: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[list[int]]:
        """The ids of every text. Raises ConfigError for an alpha other than 0: there is nothing to draw."""
        if alpha != 0:
            raise ConfigError(
                f"alpha is {alpha}: this tokenizer can cut a text in only one way: choose 0, or SentencePiece"
            )
        return [self.encode(text) for text in texts]

    def possible_ids(self, texts: Iterable[str]) -> np.ndarray:
        """No ids, (0,): there are no segmentations other than that of `encode`."""
        return np.empty(0, np.int64)

    def piece(self, token_id: int) -> str:
        """How to show one id to a person. Raises IndexError for an id outside the vocabulary."""
        index = self._inside(token_id)
        return SPECIAL_TOKENS[index] if index < FIRST_SYMBOL else self._symbol_name(index - FIRST_SYMBOL)

    def surface(self, token_id: int) -> bytes:
        """The bytes that one id adds to a text. Raises IndexError for an id outside the vocabulary."""
        index = self._inside(token_id)
        if index < FIRST_SYMBOL:
            return LOST if index == UNK else b""
        return self._symbol_bytes(index - FIRST_SYMBOL)

    @abstractmethod
    def _symbol_name(self, symbol: int) -> str:
        """How to show a symbol, by its number."""

    @abstractmethod
    def _symbol_bytes(self, symbol: int) -> bytes:
        """The bytes of a symbol, by its number."""

    def _written(self, ids: Sequence[int]) -> np.ndarray:
        """The ids that add to a text, (N,) int64: no control ids. Raises IndexError as `surface`."""
        array = np.asarray(ids, np.int64)
        outside = (array < 0) | (array >= self.vocab_size)
        if outside.any():
            self._inside(array[outside.argmax()])
        return array[~_IS_CONTROL[np.minimum(array, FIRST_SYMBOL)]]

    def _inside(self, token_id: int) -> int:
        index = int(token_id)
        if not 0 <= index < self.vocab_size:
            raise IndexError(f"id {index} is outside the vocabulary of {self.vocab_size}")
        return index

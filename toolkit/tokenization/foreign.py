"""Tokenizers of models from elsewhere, with the ids in our order."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np

from toolkit.errors import ConfigError, DataError
from toolkit.tokenization.special import SPECIAL_TOKENS, UNK
from toolkit.tokenization.surface import LOST, lenient_text

FIRST_TOKEN = len(SPECIAL_TOKENS)


class ForeignTokenizer(ABC):
    """Ids: 16 special tokens, then the tokens of another vocabulary. Subclasses say how a text is cut.

    Unlike our own tokenizers, these need not give back what they were given: many normalise a text, put a space in
    front of it or know only some characters. Each says it of itself.
    """

    def __init__(self, pieces: Sequence[str], rows: Sequence[int], surfaces: Sequence[bytes]):
        """Take how each id is shown, its foreign id, and the bytes that it adds to a text; the special ones first.

        rows: (V,), as `toolkit.interop.vocabulary.Vocabulary` has them.
        """
        self.pieces, self.rows = list(pieces), list(rows)
        self._surfaces = [*(LOST if index == UNK else b"" for index in range(FIRST_TOKEN)), *surfaces[FIRST_TOKEN:]]

    @property
    def source(self) -> "ForeignTokenizer":
        """What reads the texts that a translator translates."""
        return self

    @property
    def vocab_size(self) -> int:
        """Number of ids, the special ones included."""
        return len(self.pieces)

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without begin or end marker.

        Raises DataError for a lone surrogate, and where there is no <unk> for what the tokenizer does not know.
        """

    def encode_batch(
        self, texts: Iterable[str], alpha: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[list[int]]:
        """The ids of every text. Raises ConfigError for an alpha other than 0."""
        if alpha != 0:
            raise ConfigError(f"alpha is {alpha}: a tokenizer from elsewhere samples no segmentations, so choose 0")
        return [self.encode(text) for text in texts]

    def possible_ids(self, texts: Iterable[str]) -> np.ndarray:
        """No ids, (0,): there are no segmentations other than that of `encode`."""
        return np.empty(0, np.int64)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, with the space in front that many vocabularies begin with. Control ids are skipped.

        Raises IndexError for an id outside the vocabulary.
        """
        return lenient_text(b"".join(self.surface(index) for index in ids))

    def _known(self, ids: list[int], names: Sequence[str]) -> list[int]:
        """The ids.  Raises DataError, with the name of the first, for what is unknown where a model has no <unk>."""
        if self.rows[UNK] < 0 and UNK in ids:
            name = names[ids.index(UNK)]
            raise DataError(f"{name!r:.60} is no text to this model, and it has no token for what it does not know")
        return ids

    def piece(self, token_id: int) -> str:
        """How the other vocabulary writes one id. Raises IndexError for an id outside the vocabulary."""
        return self.pieces[self._inside(token_id)]

    def surface(self, token_id: int) -> bytes:
        """The bytes that one id adds to a text. Raises IndexError for an id outside the vocabulary."""
        return self._surfaces[self._inside(token_id)]

    def _inside(self, token_id: int) -> int:
        index = int(token_id)
        if not 0 <= index < self.vocab_size:
            raise IndexError(f"id {index} is outside the vocabulary of {self.vocab_size}")
        return index


def are_rows(value: object) -> bool:
    """Whether something from a file is a table of foreign ids, of which each occurs."""
    if not isinstance(value, list) or not all(type(row) is int and -1 <= row < len(value) for row in value):
        return False
    return len(value) > FIRST_TOKEN and set(value) >= set(range(max(value) + 1)) and min(value[FIRST_TOKEN:]) >= 0


def shown(tokens: Sequence[str | None], rows: Sequence[int]) -> list[str]:
    """How to show each of our ids, all differently, from the foreign tokens and the foreign id of each of ours.

    tokens: (foreign size,), None for an id that has no token. rows: (V,), see `toolkit.interop.vocabulary`.
    """
    pieces, taken = list(SPECIAL_TOKENS), set(SPECIAL_TOKENS)
    for foreign in rows[FIRST_TOKEN:]:
        piece = tokens[foreign]
        piece = f"<extra_{foreign}>" if piece is None else piece
        while piece in taken:
            piece += "'"
        pieces.append(piece)
        taken.add(piece)
    return pieces

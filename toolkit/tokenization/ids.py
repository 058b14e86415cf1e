"""Ids instead of text: how a model is used that came without a tokenizer, or whose texts are ids already."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from toolkit.errors import DataError
from toolkit.tokenization.foreign import ROWS, ForeignTokenizer
from toolkit.tokenization.special import SPECIAL_TOKENS, WRITTEN_FIRST
from toolkit.tokenization.tokenizer import Tokenizer
from toolkit.untrusted import Items, Text, UnfitError

_NUMBER = re.compile("[0-9]{1,10}")


class IdTokenizer(ForeignTokenizer):
    """Texts are ids, divided by spaces: "12 55 9". They are those of whoever made the model, whatever ours are.

    Every id is a token, special ones too: nothing is added, and nothing left out. `decode` puts a space in front of
    each.
    """

    kind = "ids"
    fields: ClassVar = {"pieces": Items(Text()), "rows": ROWS}

    def __init__(self, rows: Sequence[int], pieces: Sequence[str] | None = None):
        """Take the id that each of ours is called by, -1 for none, and how each is shown: as that id, if not given."""
        super().__init__(pieces or shown_pieces(rows, [str(index) for index in range(max(rows) + 1)]), rows, ())
        self.surfaces = [b" %d" % row if row >= 0 else b"" for row in rows]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self:
        """Make the one that a model with this tokenizer is used with."""
        rows = tokenizer.rows if isinstance(tokenizer, ForeignTokenizer) else range(tokenizer.vocab_size)
        return cls(rows, tokenizer.pieces)

    @classmethod
    def _from_fields(cls, values: Mapping[str, Any], path: Path) -> Self:
        if len(values["pieces"]) != len(values["rows"]):
            raise UnfitError("has another number of pieces than of rows")
        return cls(values["rows"], values["pieces"])

    def _fields(self) -> dict[str, Any]:
        return {"pieces": self.pieces, "rows": self.rows}

    @property
    def count(self) -> int:
        """The number of ids that a text may have: each is below it."""
        return max(self.rows) + 1

    def encode(self, text: str) -> list[int]:
        """Give our ids of those in a text.  Raises DataError for a word that is none of the model's ids."""
        words = text.split()
        for word in words:
            if not _NUMBER.fullmatch(word):
                raise DataError(f"{word!r:.40} is no id: give {self._range}, divided by spaces")
        return self.given_ids(map(int, words))

    def shown_ids(self, ids: Iterable[int]) -> list[int]:
        return [self.rows[index] for index in ids]

    def given_ids(self, ids: Iterable[int]) -> list[int]:
        try:
            return [self._ours[index] for index in ids]
        except KeyError as error:
            raise DataError(f"{error} is not one of the ids of the model: give {self._range}") from None

    @property
    def _range(self) -> str:
        return f"whole numbers from 0 to {self.count - 1}"

    @cached_property
    def _ours(self) -> dict[int, int]:
        """Our id of each; where several of ours are one, the one that is written."""
        first = [*WRITTEN_FIRST, *(index for index in range(len(self.rows)) if index not in WRITTEN_FIRST)]
        return {self.rows[index]: index for index in reversed(first) if self.rows[index] >= 0}


def shown_pieces(rows: Sequence[int], names: Sequence[str]) -> list[str]:
    """Name each of our ids as its foreign id is; special ids that the foreign model lacks get a name that is free."""
    taken, pieces = set(names), []
    for index, row in enumerate(rows):
        piece = names[row] if row >= 0 else SPECIAL_TOKENS[index]
        while row < 0 and piece in taken:
            piece += "'"
        pieces.append(piece)
    return pieces

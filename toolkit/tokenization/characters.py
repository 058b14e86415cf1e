"""Characters as tokens: the vocabulary is the characters of the text that was learned from."""

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from toolkit.errors import DataError
from toolkit.tokenization.normal_form import code_points, normal_form
from toolkit.tokenization.special import UNK
from toolkit.tokenization.storage import JSON_FILE, damaged, read_settings, write_settings
from toolkit.tokenization.surface import REPLACEMENT
from toolkit.tokenization.symbols import FIRST_SYMBOL, SymbolTokenizer

LARGEST_ALPHABET = 2**16 - FIRST_SYMBOL  # so that ids fit uint16
_CODE_POINTS = 0x110000
_AT_ONCE = 1 << 20  # characters of one text that are looked at together


class CharacterTokenizer(SymbolTokenizer):
    """The characters (code points) of a text. Ids: 16 special tokens, then the known characters by code point."""

    kind = "character"

    def __init__(self, characters: Iterable[str]):
        """Take the characters that are known: any iterable of single characters, a text or a set.

        Raises DataError if there are none, or more than 65,520, or one is half of a surrogate pair.
        """
        points = sorted({ord(character) for character in characters})
        self.characters = "".join(map(chr, points))
        _check_alphabet(len(points))
        code_points(self.characters)  # raises for surrogates

    @classmethod
    def train(cls, texts: Iterable[str]) -> "CharacterTokenizer":
        """Know every character of the texts in normal form C, a stream of any length.

        Raises DataError for texts without a character, with more than 65,520 different ones or with a lone surrogate.
        """
        seen = np.zeros(_CODE_POINTS, np.bool_)
        for text in map(normal_form, texts):
            for begin in range(0, len(text), _AT_ONCE):
                seen[code_points(text[begin : begin + _AT_ONCE])] = True
        _check_alphabet(int(seen.sum()))
        return cls(map(chr, np.flatnonzero(seen).tolist()))

    def __reduce__(self) -> tuple[type, tuple[str]]:
        """Pickled as its characters, without the tables."""
        return type(self), (self.characters,)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> "CharacterTokenizer":
        """Read `tokenizer.json` of a model directory. Raises ModelError if it is missing or damaged."""
        path = Path(directory) / JSON_FILE
        settings = read_settings(directory)
        characters = settings.pop("characters", None)
        if settings != {"kind": cls.kind} or not isinstance(characters, str):
            raise damaged(path)
        try:
            tokenizer = cls(characters)
        except DataError as error:
            raise damaged(path) from error
        if tokenizer.characters != characters:  # another order would be other ids
            raise damaged(path)
        return tokenizer

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write `tokenizer.json` into a directory, which is made if need be. Raises DataError if that fails."""
        write_settings(directory, self.kind, characters=self.characters)

    @property
    def vocab_size(self) -> int:
        """Number of ids, the special ones included."""
        return FIRST_SYMBOL + len(self.characters)

    def encode_array(self, text: str) -> np.ndarray:
        """The ids of `text` in normal form C, (N,) uint16.

        Raises DataError for a character that is not in the vocabulary, and for a lone surrogate.
        """
        text = normal_form(text)
        ids = self._ids[code_points(text)]
        if not ids.all():
            self._refuse(text, int((ids == 0).argmax()))
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`. Control ids are skipped, <unk> becomes U+FFFD.

        Raises IndexError for an id outside the vocabulary.
        """
        return self._points[self._written(ids)].tobytes().decode("utf-32-le")

    @cached_property
    def _ids(self) -> np.ndarray:
        """The id of every code point, (0x110000,) uint16; 0 for those that are not known."""
        ids = np.zeros(_CODE_POINTS, np.uint16)
        ids[self._points[FIRST_SYMBOL:]] = np.arange(FIRST_SYMBOL, self.vocab_size)
        return ids

    @cached_property
    def _points(self) -> np.ndarray:
        """The code point of every id, (V,); U+FFFD for <unk>."""
        points = np.zeros(self.vocab_size, "<u4")
        points[UNK] = ord(REPLACEMENT)
        points[FIRST_SYMBOL:] = code_points(self.characters)
        return points

    def _refuse(self, text: str, index: int) -> None:
        around = text[max(0, index - 20) : index + 20]
        raise DataError(
            f"the character {text[index]!r} (U+{ord(text[index]):04X}) in {around!r} is not among the "
            f"{len(self.characters)} characters that the tokenizer knows: leave it out, or train on text that has it"
        )

    def _symbol_name(self, symbol: int) -> str:
        return self.characters[symbol]

    def _symbol_bytes(self, symbol: int) -> bytes:
        return self.characters[symbol].encode()


def _check_alphabet(size: int) -> None:
    if not size:
        raise DataError("the tokenizer has no text to learn from: give it at least one character")
    if size > LARGEST_ALPHABET:
        raise DataError(
            f"the text has {size} different characters, a character tokenizer takes {LARGEST_ALPHABET} at most: "
            "use bytes or SentencePiece"
        )

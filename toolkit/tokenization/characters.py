"""Characters or bytes as tokens: a text is taken symbol by symbol, in only one way."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from toolkit.errors import DataError
from toolkit.tokenization.normal_form import code_points, normal_form, utf8_bytes
from toolkit.tokenization.special import CONTROL_IDS, FIRST_TOKEN, SPECIAL_TOKENS, UNK
from toolkit.tokenization.tokenizer import LOST, REPLACEMENT, SPECIAL_SURFACES, Tokenizer, lenient_text
from toolkit.untrusted import Text, UnfitError

LARGEST_ALPHABET = 2**16 - FIRST_TOKEN  # so that ids fit uint16
_CODE_POINTS = 0x110000
_AT_ONCE = 1 << 20  # characters of one text that are looked at together

_IS_CONTROL = np.isin(np.arange(FIRST_TOKEN + 1), sorted(CONTROL_IDS))  # the last entry is for all symbols


class SymbolTokenizer(Tokenizer):
    """Ids: 16 special tokens, then the symbols. The subclasses say what a symbol is."""

    @abstractmethod
    def encode_array(self, text: str) -> np.ndarray:
        """Encode a text as `encode` does, into an array (N,) uint16, for texts of many megabytes."""

    def encode(self, text: str) -> list[int]:
        return self.encode_array(text).tolist()

    def _written(self, ids: Sequence[int]) -> np.ndarray:
        """Keep the ids that add to a text, (N,) int64: no control ids. Raises IndexError as `decode`."""
        array = np.asarray(ids, np.int64)
        outside = (array < 0) | (array >= self.vocab_size)
        if outside.any():
            self._inside(array[outside.argmax()])
        return array[~_IS_CONTROL[np.minimum(array, FIRST_TOKEN)]]


class ByteTokenizer(SymbolTokenizer):
    """The bytes of UTF-8, with nothing to learn. Ids: 16 special tokens, then 256 bytes, as SentencePiece has them."""

    kind = "byte"
    # A visible character of ASCII is shown as itself, any other byte as <0x0A>.
    pieces = (*SPECIAL_TOKENS, *(chr(byte) if 0x20 < byte < 0x7F else f"<0x{byte:02X}>" for byte in range(256)))
    surfaces = (*SPECIAL_SURFACES, *(bytes([byte]) for byte in range(256)))

    def encode_array(self, text: str) -> np.ndarray:
        return np.add(utf8_bytes(normal_form(text)), FIRST_TOKEN, dtype=np.uint16)

    def decode(self, ids: Sequence[int]) -> str:
        ids = self._written(ids)
        return lenient_text(np.where(ids == UNK, LOST[0], ids - FIRST_TOKEN).astype(np.uint8).tobytes())


class CharacterTokenizer(SymbolTokenizer):
    """The characters (code points) of a text. Ids: 16 special tokens, then the known characters by code point.

    `encode` raises DataError for a character that is not in the vocabulary.
    """

    kind = "character"
    fields: ClassVar = {"characters": Text()}

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
        """Pickle the characters, without the tables."""
        return type(self), (self.characters,)

    def _fields(self) -> dict[str, Any]:
        return {"characters": self.characters}

    @classmethod
    def _from_fields(cls, values: Mapping[str, Any], path: Path) -> "CharacterTokenizer":
        tokenizer = cls(values["characters"])
        if tokenizer.characters != values["characters"]:
            raise UnfitError("has characters in another order, which would be other ids")
        return tokenizer

    @property
    def vocab_size(self) -> int:
        return FIRST_TOKEN + len(self.characters)

    @cached_property
    def pieces(self) -> list[str]:
        return [*SPECIAL_TOKENS, *self.characters]

    @cached_property
    def surfaces(self) -> list[bytes]:
        return [*SPECIAL_SURFACES, *map(str.encode, self.characters)]

    def encode_array(self, text: str) -> np.ndarray:
        text = normal_form(text)
        ids = self._ids[code_points(text)]
        if not ids.all():
            index = int((ids == 0).argmax())
            around = text[max(0, index - 20) : index + 20]
            raise DataError(
                f"the character {text[index]!r} (U+{ord(text[index]):04X}) in {around!r} is not among the "
                f"{len(self.characters)} characters that the tokenizer knows: leave it out, or train on text that has "
                "it"
            )
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return self._points[self._written(ids)].tobytes().decode("utf-32-le")

    @cached_property
    def _ids(self) -> np.ndarray:
        """Map every code point to its id, (0x110000,) uint16; 0 for those that are not known."""
        ids = np.zeros(_CODE_POINTS, np.uint16)
        ids[self._points[FIRST_TOKEN:]] = np.arange(FIRST_TOKEN, self.vocab_size)
        return ids

    @cached_property
    def _points(self) -> np.ndarray:
        """Map every id to its code point, (V,); U+FFFD for <unk>."""
        points = np.zeros(self.vocab_size, "<u4")
        points[UNK] = ord(REPLACEMENT)
        points[FIRST_TOKEN:] = code_points(self.characters)
        return points


def _check_alphabet(size: int) -> None:
    if not size:
        raise DataError("the tokenizer has no text to learn from: give it at least one character")
    if size > LARGEST_ALPHABET:
        raise DataError(
            f"the text has {size} different characters, a character tokenizer takes {LARGEST_ALPHABET} at most: "
            "use bytes or SentencePiece"
        )

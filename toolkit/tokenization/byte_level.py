"""Bytes as tokens: every text in 272 ids, with nothing to learn."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from toolkit.tokenization.normal_form import normal_form, utf8_bytes
from toolkit.tokenization.special import UNK
from toolkit.tokenization.storage import JSON_FILE, damaged, read_settings, write_settings
from toolkit.tokenization.surface import LOST, lenient_text
from toolkit.tokenization.symbols import FIRST_SYMBOL, SymbolTokenizer


class ByteTokenizer(SymbolTokenizer):
    """The bytes of UTF-8. Ids: 16 special tokens, then 256 bytes, as SentencePiece tokenizers have them too."""

    kind = "byte"

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> "ByteTokenizer":
        """Read `tokenizer.json` of a model directory. Raises ModelError if it is missing or of another kind."""
        if read_settings(directory) != {"kind": cls.kind}:
            raise damaged(Path(directory) / JSON_FILE)
        return cls()

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write `tokenizer.json` into a directory, which is made if need be. Raises DataError if that fails."""
        write_settings(directory, self.kind)

    @property
    def vocab_size(self) -> int:
        """Number of ids, the special ones included: 272."""
        return FIRST_SYMBOL + 256

    def encode_array(self, text: str) -> np.ndarray:
        """The ids of `text` in normal form C, (N,) uint16. Raises DataError for a lone surrogate."""
        return np.add(utf8_bytes(normal_form(text)), FIRST_SYMBOL, dtype=np.uint16)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`. Control ids are skipped; <unk> and each byte that is not UTF-8 become U+FFFD.

        Raises IndexError for an id outside the vocabulary.
        """
        ids = self._written(ids)
        return lenient_text(np.where(ids == UNK, LOST[0], ids - FIRST_SYMBOL).astype(np.uint8).tobytes())

    def _symbol_name(self, symbol: int) -> str:
        """A visible character of ASCII as itself, any other byte as <0x0A>."""
        return chr(symbol) if 0x20 < symbol < 0x7F else f"<0x{symbol:02X}>"

    def _symbol_bytes(self, symbol: int) -> bytes:
        return bytes([symbol])

"""What every tokenizer can do."""

import os
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np


class Tokenizer(Protocol):
    """Text to ids and back: decode(encode(text)) is text in Unicode normal form C, for every text.

    That holds for our own; tokenizers of models from elsewhere may lose something (see `ForeignTokenizer`).
    """

    @property
    def vocab_size(self) -> int:
        """Number of ids, the special ones included: every id is below it."""
        ...

    @property
    def source(self) -> "Tokenizer":
        """What reads the texts that a translator translates: itself, but for some from elsewhere. The ids are alike."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without begin or end marker. No text yields a control id, whatever it looks like."""
        ...

    def encode_batch(
        self, texts: Iterable[str], alpha: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[list[int]]:
        """[encode(text) for text in texts], faster; with `alpha` above 0, random segmentations of the same texts."""
        ...

    def possible_ids(self, texts: Iterable[str]) -> np.ndarray:
        """Sorted ids, (P,), that random segmentations of the texts may have beside those of `encode`."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids` (any integers, NumPy's too). Control ids are skipped."""
        ...

    def piece(self, token_id: int) -> str:
        """How to show one id to a person: "▁house", "<0x0A>", "</s>"."""
        ...

    def surface(self, token_id: int) -> bytes:
        """The bytes that one id adds to a text: none for a control id, 0xFF for <unk>, maybe part of a character.

        `decode` is the text of all these bytes together, with U+FFFD for each that is not UTF-8.
        """
        ...

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write into a model directory what `load_tokenizer` needs."""
        ...

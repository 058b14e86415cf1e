"""The first look at all texts: how much there is, what a tokenizer learns from, what is taken out for validation."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from toolkit.data.store import ArrayWriter, map_array
from toolkit.data.texts import Piece, utf8_length

LARGEST_VALIDATION = 2_000_000  # bytes of text that are taken out at most
SLICE = 8192  # characters of text that are sampled together, or a little more

_BUFFERED = 1 << 16  # sizes of documents in memory


class Slice(NamedTuple):
    """A part of a document, for a sample: the number of its document, the number of its first character, itself."""

    document: int
    begin: int
    text: str


class Survey:
    """Counts the documents of sources while they are read; a context manager that keeps their sizes in a file."""

    def __init__(self, path: Path):
        self.documents = self.characters = self.bytes = 0
        self._path, self._sizes = path, ArrayWriter(path, np.int64)

    def __enter__(self) -> "Survey":
        self._sizes.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._sizes.__exit__(*error)

    def read(self, pieces: Iterable[Piece]) -> Iterator[list[Slice]]:
        """All text in its order, short documents together, so that all lists have about SLICE characters or more."""
        sizes, size, begun, together, length = array("q"), 0, False, [], 0
        for piece in pieces:
            for text in _slices(piece.text):
                together.append(Slice(self.documents, self.characters, text))
                self.characters += len(text)
                length += len(text)
                if length >= SLICE:
                    yield together
                    together, length = [], 0
            size += utf8_length(piece.text)
            begun = not piece.ends
            if piece.ends:
                self.documents += 1
                sizes.append(size)
                size = 0
            if len(sizes) >= _BUFFERED:
                self._write(sizes)
        if begun:
            self.documents += 1
            sizes.append(size)
        self._write(sizes)
        if together:
            yield together

    def _write(self, sizes: array) -> None:
        values = np.array(sizes, np.int64)
        self.bytes += int(values.sum())
        self._sizes.append(values)
        del sizes[:]

    def hold_out(self, share: float) -> "HeldOut":
        """What to validate on where no sources are given for that; after everything is read.

        About `share` of the bytes, at most LARGEST_VALIDATION: every k-th document, without those that are too large
        for it; where there is only one document, or none is small enough, the end of the text.
        """
        most = min(share * self.bytes, LARGEST_VALIDATION)
        step = math.ceil(max(self.bytes, 1) / max(most, 1) - 1e-9)  # 1 / 0.1 is to be 10
        if self.documents > 1:
            sizes = map_array(self._path)[step - 1 :: step]
            taken, chosen = 0, []
            for index, size in enumerate(sizes.tolist()):
                if taken + size <= min(2 * most, LARGEST_VALIDATION):  # some are larger than the average
                    taken += size
                    chosen.append(step - 1 + index * step)
            if chosen:
                return HeldOut(documents=chosen)
        if most < LARGEST_VALIDATION:
            return HeldOut(begin=int(self.characters * (1 - share)))
        return HeldOut(begin=self.characters - int(LARGEST_VALIDATION * self.characters / self.bytes))


@dataclass(frozen=True)
class HeldOut:
    """What is taken out of the texts: documents by their number, ascending, or all from a character on; or nothing."""

    documents: Sequence[int] = ()
    begin: int | None = None

    def without(self, together: Sequence[Slice]) -> Iterator[str]:
        """The slices that stay."""
        for document, begin, text in together:
            if self.begin is not None:
                text = text[: max(0, self.begin - begin)]
            if text and not self._has(document):
                yield text

    def _has(self, document: int) -> bool:
        index = bisect_left(self.documents, document)
        return index < len(self.documents) and self.documents[index] == document

    def divide(self, pieces: Iterable[Piece]) -> Iterator[tuple[bool, Piece]]:
        """Every piece of all texts, and whether it is taken out."""
        numbers = iter(self.documents)
        next_taken = next(numbers, None)
        document = done = 0
        for piece in pieces:
            here = len(piece.text) if self.begin is None else self.begin - done
            if here >= len(piece.text):
                yield document == next_taken, piece
            elif here <= 0:
                yield True, piece
            else:
                yield False, Piece(piece.text[:here], False)
                yield True, Piece(piece.text[here:], piece.ends)
            done += len(piece.text)
            if piece.ends:
                if document == next_taken:
                    next_taken = next(numbers, None)
                document += 1


def _slices(text: str) -> list[str]:
    """A text in slices, cut before spaces where it has some."""
    begin, slices = 0, []
    while len(text) - begin > SLICE:
        space = text.find(" ", begin + SLICE)
        end = space if space > 0 else len(text)
        slices.append(text[begin:end])
        begin = end
    if begin < len(text):
        slices.append(text[begin:])
    return slices

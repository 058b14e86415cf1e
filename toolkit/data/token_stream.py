"""The ids of much text: encoders that work on many texts at once, and the writer of what they give."""

import re
from array import array
from collections.abc import Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path

import numpy as np

from toolkit.data.store import RaggedWriter
from toolkit.data.texts import PIECE, Piece, utf8_length
from toolkit.errors import DataError
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer, Tokenizer
from toolkit.tokenization.normal_form import is_normal_form
from toolkit.tokenization.special import BOS, EOS

_REMEMBERED = 2_000_000  # characters of different words: some 30 MB with all that belongs to them
_UNKNOWN = -1


class WordEncoder:
    """Encodes as `tokenizer.encode` does, a word at a time, and remembers the words.

    No piece of a SentencePiece vocabulary reaches beyond the space in front of a word, so a word has the same ids in
    every text, and looking them up takes less time than finding them again: with BPE a sixth. After line ends, too, a
    text is cut where no piece goes on, so that the last word of a line and the first of the next are not one word.

    (The library adds up the scores of a whole text in float32. In texts of many thousand characters, what it rounds
    away decides here and there between two segmentations; word by word, it is always the more probable one.)
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._line = _line_pattern(tokenizer)
        self._forget()

    def _forget(self) -> None:
        self._after_space: dict[str, int] = {}  # a word's number, where a space is in front of it
        self._at_start: dict[str, int] = {}  # and where its text begins with it
        self._ids, self._begins, self._lengths = array("i"), array("q"), array("q")  # of the words by number
        self._characters = 0

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Encode texts in normal form C -> the ids of all, in turn, (n,), and how many each text has, (texts,)."""
        if self._characters > _REMEMBERED:
            self._forget()
        lines = [self._line.findall(text) or [""] for text in texts]
        numbers, first_words = self._words([line for text in lines for line in text])
        first_lines = np.cumsum([0, *map(len, lines[:-1])])
        lengths = np.asarray(self._lengths)[numbers]
        ends = lengths.cumsum()
        places = np.repeat(np.asarray(self._begins)[numbers] - (ends - lengths), lengths)
        places += np.arange(len(places))
        return np.asarray(self._ids)[places], np.add.reduceat(lengths, first_words[first_lines])

    def _words(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Number all words of some lines; returns that, and the places of the words that lines begin with, (lines,)."""
        words = " ".join(lines).split(" ")
        firsts = np.cumsum([0, *(line.count(" ") + 1 for line in lines[:-1])])
        places = firsts.tolist()
        starts = [words[place] for place in places]
        for place in places:
            words[place] = ""  # has no space in front of it, and need not be encoded with one
        numbers = self._numbers(words, self._after_space, " ")
        numbers[firsts] = self._numbers(starts, self._at_start, "")
        return numbers, firsts

    def _numbers(self, words: list[str], known: dict[str, int], front: str) -> np.ndarray:
        """Number words, (words,); those that are not known are encoded with `front` before them."""
        numbers = np.fromiter(map(known.get, words, repeat(_UNKNOWN)), np.int64, len(words))
        unknown = np.flatnonzero(numbers == _UNKNOWN).tolist()
        if unknown:
            new = list(dict.fromkeys(words[index] for index in unknown))
            for word, ids in zip(new, self._tokenizer.encode_batch([front + word for word in new]), strict=True):
                known[word] = len(self._lengths)
                self._begins.append(len(self._ids))
                self._lengths.append(len(ids))
                self._ids.extend(ids)
                self._characters += len(word) + 1
            numbers[unknown] = [known[words[index]] for index in unknown]
        return numbers


def _line_pattern(tokenizer: Tokenizer) -> re.Pattern[str]:
    """Finds the lines of a text with their ends; those that a piece might join are left together."""
    pieces = (tokenizer.piece(index) for index in range(tokenizer.vocab_size))
    after = {piece[place + 1] for piece in pieces for place in range(len(piece) - 1) if piece[place] == "\n"} - {"\n"}
    goes_on = rf"|\n+(?=[{re.escape(''.join(sorted(after)))}])" if after else ""
    return re.compile(rf"(?:[^\n]+{goes_on})+\n*|\n+")


class ArrayEncoder:
    """Encodes as `WordEncoder` does, for a tokenizer that needs no look-up."""

    def __init__(self, tokenizer: CharacterTokenizer | ByteTokenizer):
        self._tokenizer = tokenizer
        self._length = len if isinstance(tokenizer, CharacterTokenizer) else utf8_length

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """As `WordEncoder.encode`."""
        joined = "".join(texts)
        if is_normal_form(joined):
            return self._tokenizer.encode_array(joined), np.fromiter(map(self._length, texts), np.int64, len(texts))
        # A text begins with a mark that would join the end of the one before it.
        ids = [self._tokenizer.encode_array(text) for text in texts]
        return np.concatenate(ids), np.fromiter(map(len, ids), np.int64, len(ids))


class PieceEncoder:
    """Encodes as `WordEncoder` does, for a tokenizer from elsewhere, whose tokens may be of several words.

    Where it puts a space in front of whatever it reads, a text that begins with one gets no second.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer, self._has_space = tokenizer, False
        with suppress(DataError):  # of one that knows no such letter
            self._has_space = tokenizer.decode(tokenizer.encode("a")).startswith(" ")

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """As `WordEncoder.encode`."""
        ids = self._tokenizer.encode_batch(text.removeprefix(" ") if self._has_space else text for text in texts)
        return np.array([index for own in ids for index in own], np.int64), np.array([*map(len, ids)], np.int64)


Encoder = WordEncoder | ArrayEncoder | PieceEncoder


def stream_encoder(tokenizer: Tokenizer) -> Encoder:
    """Choose the fastest way to encode a corpus."""
    if isinstance(tokenizer, CharacterTokenizer | ByteTokenizer):
        return ArrayEncoder(tokenizer)
    return WordEncoder(tokenizer) if isinstance(tokenizer, SentencePieceTokenizer) else PieceEncoder(tokenizer)


def marked(ids: np.ndarray, lengths: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put BOS in front of the texts (ids (n,), lengths (texts,)) that `begin` (texts,) says, EOS after those of `end`.

    Returns ids and lengths, as `WordEncoder.encode` gives them.
    """
    lengths = lengths + begin + end
    ends = lengths.cumsum()
    with_marks = np.empty(int(lengths.sum()), ids.dtype)
    is_id = np.ones(len(with_marks), bool)
    for places, mark in ((ends - lengths)[begin], BOS), ((ends - 1)[end], EOS):
        with_marks[places] = mark
        is_id[places] = False
    with_marks[is_id] = ids
    return with_marks, lengths


class TokenWriter(RaggedWriter):
    """Writes the store of one set, a sequence for each document, as a context manager that ends the last document.

    marks: whether sequences begin with BOS, and whether they end with EOS. Counts what was written: `documents`,
    `tokens` (the marks included), `characters`, and `bytes`, which is what the tokens stand for in UTF-8.
    """

    def __init__(self, prefix: Path, dtype: type, encoder: Encoder, marks: tuple[bool, bool]):
        super().__init__(prefix, dtype)
        self.documents = self.tokens = self.characters = self.bytes = 0
        self._encoder, self._marks = encoder, marks
        self._texts: list[str] = []
        self._begins: list[bool] = []
        self._ends: list[bool] = []
        self._waiting = 0  # characters
        self._is_open = False

    def __exit__(self, kind: type | None, *error: object) -> None:
        try:
            if kind is None:
                if self._is_open:
                    self.add(Piece("", True), "")
                self._write()
        finally:
            super().__exit__(kind, *error)

    def add(self, piece: Piece, separator: str) -> None:
        """Go on with the document, or begin the next one; separator: what EOS stands for in the text."""
        self._texts.append(piece.text)
        self._begins.append(not self._is_open)
        self._ends.append(piece.ends)
        self._is_open = not piece.ends
        self._waiting += len(piece.text)
        self.characters += len(piece.text)
        self.bytes += utf8_length(piece.text)
        if piece.ends:
            self.documents += 1
            self.bytes += len(separator)
        if self._waiting >= PIECE or len(self._texts) >= PIECE:
            self._write()

    def _write(self) -> None:
        if not self._texts:
            return
        ids, lengths = self._encoder.encode(self._texts)
        ends = np.array(self._ends)
        if any(self._marks):
            has_begin, has_end = self._marks
            ids, lengths = marked(ids, lengths, np.array(self._begins) & has_begin, ends & has_end)
        self.append(ids, lengths.cumsum()[ends])
        self.tokens += len(ids)
        self._texts, self._begins, self._ends, self._waiting = [], [], [], 0

"""Text on the disk for a language model: a tokenizer, and what it makes of texts to train and to validate on.

A directory:

    corpus.json             what was read, and what it became
    tokenizer.*             the tokenizer
    train.*, valid.*        stores of ids, a sequence for each document
    checksums.json          of all of these

It is made in two passes over the sources, the first of which counts, and learns the tokenizer. Neither holds more than
a few megabytes of text and the sample that a SentencePiece vocabulary is learned from, however much there is.
"""

import math
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from toolkit.data.corpus import PURPOSES, SPLIT_NAMES, SPLITS, Corpus, Split, check_share, finish_corpus, id_type
from toolkit.data.store import RaggedStore
from toolkit.data.texts import Piece, TextSource, utf8_length
from toolkit.data.token_stream import TokenWriter, stream_encoder
from toolkit.display import progress_bar
from toolkit.errors import DataError
from toolkit.files import replaced_directory
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer, Tokenizer, load_tokenizer
from toolkit.tokenization.subword_training import reservoir

TokenizerKind = Literal["unigram", "bpe", "character", "byte"]

_SAMPLE = 8_000_000  # characters that a SentencePiece vocabulary is learned from

LARGEST_VALIDATION = 2_000_000  # bytes of text that are taken out at most
SLICE = 8192  # characters of text that are sampled together, or a little more
Slice = tuple[int, int, str]  # the number of a document, the number of the first character, and the text


class TextCorpus(Corpus):
    """Texts as ids, in a directory; made by `build`, and made again from the disk by `open`.

    tokenizer: what made the ids, and belongs to every model that is trained on them.
    """

    def __init__(self, directory: Path):
        """Open a directory without comparing checksums; see `open`."""
        super().__init__(directory)
        self.tokenizer: Tokenizer = load_tokenizer(directory)
        self._documents = {split: RaggedStore(directory / split) for split in SPLITS}

    @classmethod
    def build(
        cls,
        directory: Path,
        train: Sequence[TextSource],
        valid: Sequence[TextSource],
        tokenizer: TokenizerKind | Tokenizer,
        vocab_size: int,
        marks: bool,
        valid_share: float = 0.1,
        seed: int = 0,
        quiet: bool = True,
        begin: bool = True,
    ) -> "TextCorpus":
        """Read all sources and write a corpus in the place of `directory`, which stays as it was if that fails.

        valid: where there are none, about `valid_share` of the training text is validated on instead of trained on, see
            `CorpusStatistics.hold_out`; of a text that is not divided into documents, its end: training has the first
            int((1 - valid_share) * n) of n characters.
        tokenizer, vocab_size: what is learned, "unigram" and "bpe" from a random sample (`seed`) of what is trained on.
            A character tokenizer has all characters of both sets and a byte tokenizer nothing to learn, whatever
            `vocab_size` is. One that is given is used as it is.
        marks: whether the ids of a document stand between BOS and EOS, or where there is no `begin`, in front of EOS.
        quiet: no progress is shown on a terminal.

        Raises DataError for what sources and tokenizers refuse, if one of the sets has less than two tokens and if
        `directory` cannot be written, ConfigError for a share that is not above 0 and at most a half.
        """
        check_share(valid_share, "text")
        with replaced_directory(directory) as new:
            began = time.perf_counter()
            pieces = _Pieces(train, quiet), _Pieces(valid, quiet)
            learned, held_out = _learn(*pieces, valid_share, tokenizer, vocab_size, seed)
            learned.save(new)
            looked = time.perf_counter()
            report = _encode(new, train, valid, held_out, learned, (marks and begin, marks), quiet)
            seconds = {"reading": looked - began, "encoding": time.perf_counter() - looked}
            given = "given" if isinstance(tokenizer, Tokenizer) else tokenizer
            kind = {"kind": given, "vocab_size": learned.vocab_size}
            report |= {"tokenizer": kind, "seconds": {name: round(value, 3) for name, value in seconds.items()}}
            finish_corpus(new, report)
        return cls(directory)

    def documents(self, split: Split) -> RaggedStore:
        """Return the ids of a set, a sequence for each document, with BOS and EOS if it has them."""
        return self._documents[split]

    def text_bytes(self, split: Split) -> int:
        """Count the bytes in UTF-8 of the text that the tokens of a set stand for; for bits per byte.

        What stood between two documents, which their marks stand for, is counted too.
        """
        return self.report[split]["bytes"]

    def describe(self) -> list[str]:
        """Say what was read and what it became, in sentences."""
        lines = []
        for split, name in SPLIT_NAMES.items():
            part = self.report[split]
            documents = f"{part['documents']:,} document{'s' * (part['documents'] != 1)}, "
            taken = ", taken out of the training text" if part["taken_out"] else ""
            lines.append(
                f"{name} text: {documents}{part['bytes']:,} bytes, {part['tokens']:,} tokens "
                f"({part['tokens'] / max(part['bytes'], 1):.3f} a byte){taken}"
            )
            for source in self._sources(split):
                lines.append(f"    {source['name']}: {source['characters']:,} characters")
        kind, seconds = self.report["tokenizer"], self.report["seconds"]
        size = sum(self.text_bytes(split) for split in SPLITS) / 1e6
        speed = size / max(seconds["encoding"], 1e-3)
        lines.append(f"tokenizer: {kind['kind']}, {kind['vocab_size']:,} tokens; {size:,.1f} MB at {speed:,.0f} MB/s")
        return lines


class CorpusStatistics:
    """Counts the documents of sources while they are read, and keeps their sizes: 8 bytes a document."""

    def __init__(self):
        self.characters, self.sizes = 0, array("q")  # bytes of every document

    def read(self, pieces: Iterable[Piece]) -> Iterator[list[Slice]]:
        """Yield all text in its order, short documents together, so that lists have about SLICE characters or more."""
        together, length, begun = [], 0, False
        for piece in pieces:
            if not begun:
                self.sizes.append(0)
            for text in _slices(piece.text):
                together.append((len(self.sizes) - 1, self.characters, text))
                self.characters += len(text)
                length += len(text)
                if length >= SLICE:
                    yield together
                    together, length = [], 0
            self.sizes[-1] += utf8_length(piece.text)
            begun = not piece.ends
        if together:
            yield together

    def hold_out(self, share: float) -> "ValidationSplit":
        """Choose what to validate on where no sources are given for that; after everything is read.

        About `share` of the bytes, at most LARGEST_VALIDATION: every k-th document, without those that are too large
        for it; where there is only one document, or none is small enough, the end of the text.
        """
        total = sum(self.sizes)
        most = min(share * total, LARGEST_VALIDATION)
        step = math.ceil(max(total, 1) / max(most, 1) - 1e-9)  # 1 / 0.1 is to be 10
        if len(self.sizes) > 1:
            taken, chosen = 0, []
            for index, size in enumerate(self.sizes[step - 1 :: step]):
                if taken + size <= min(2 * most, LARGEST_VALIDATION):  # some are larger than the average
                    taken += size
                    chosen.append(step - 1 + index * step)
            if chosen:
                return ValidationSplit(documents=chosen)
        if most < LARGEST_VALIDATION:
            return ValidationSplit(begin=int(self.characters * (1 - share)))
        return ValidationSplit(begin=self.characters - int(LARGEST_VALIDATION * self.characters / total))


@dataclass(frozen=True)
class ValidationSplit:
    """Documents that are taken out of the texts, by their number, ascending, or all from a character on; or nothing."""

    documents: Sequence[int] = ()
    begin: int | None = None

    def without(self, together: Sequence[Slice]) -> Iterator[str]:
        """Yield the slices that stay."""
        for document, begin, text in together:
            if self.begin is not None:
                text = text[: max(0, self.begin - begin)]
            index = bisect_left(self.documents, document)
            if text and document not in self.documents[index : index + 1]:
                yield text

    def divide(self, pieces: Iterable[Piece]) -> Iterator[tuple[bool, Piece]]:
        """Yield whether a piece of the texts is taken out, and the piece, for all of them."""
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
    """Cut a text into slices, before spaces where it has some."""
    begin, slices = 0, []
    while len(text) - begin > SLICE:
        space = text.find(" ", begin + SLICE)
        end = space if space > 0 else len(text)
        slices.append(text[begin:end])
        begin = end
    if begin < len(text):
        slices.append(text[begin:])
    return slices


class _Pieces:
    """Pieces of sources one after the other, with a progress bar; `source` is the one that is being read."""

    def __init__(self, sources: Sequence[TextSource], quiet: bool, what: str = "reading"):
        self.sources, self._quiet, self._what = sources, quiet, what
        self.source: TextSource | None = None

    def __iter__(self) -> Iterator[Piece]:
        sizes = [source.bytes for source in self.sources]
        total = None if None in sizes else sum(size for size in sizes if size)
        hidden = self._quiet or not sizes
        with progress_bar(hidden, total=total, desc=self._what, unit="B", unit_scale=True, leave=False) as bar:
            for source in self.sources:
                self.source = source
                for piece in source:
                    yield piece
                    bar.update(utf8_length(piece.text))


def _learn(
    train: _Pieces, valid: _Pieces, valid_share: float, kind: TokenizerKind | Tokenizer, vocab_size: int, seed: int
) -> tuple[Tokenizer, ValidationSplit]:
    """Make the first pass; returns the tokenizer, and which of the training texts to validate on."""
    statistics, sample, tokenizer = CorpusStatistics(), [], None
    reading = statistics.read(train)
    if kind == "character":
        texts = (text for together in reading for _, _, text in together)
        tokenizer = CharacterTokenizer.train(chain(texts, (piece.text for piece in valid)))
    elif kind == "byte" or isinstance(kind, Tokenizer):
        tokenizer = ByteTokenizer() if kind == "byte" else kind
        for _ in reading:
            pass
    else:
        sample = reservoir(reading, _SAMPLE // SLICE, np.random.default_rng(seed))
    held_out = ValidationSplit() if valid.sources else statistics.hold_out(valid_share)
    if tokenizer is None:
        texts = (text for together in sample for text in held_out.without(together))
        tokenizer = SentencePieceTokenizer.train(texts, vocab_size, kind, seed)
    return tokenizer, held_out


def _encode(
    new: Path,
    train: Sequence[TextSource],
    valid: Sequence[TextSource],
    held_out: ValidationSplit,
    tokenizer: Tokenizer,
    marks: tuple[bool, bool],
    quiet: bool,
) -> dict[str, Any]:
    """Make the second pass: write the ids; returns the report about them.  marks: whether there are BOS, and EOS."""
    dtype, encoder, sources = id_type(tokenizer.vocab_size), stream_encoder(tokenizer), []
    with ExitStack() as stack:
        writers = {split: stack.enter_context(TokenWriter(new / split, dtype, encoder, marks)) for split in SPLITS}
        for split, given, taken in ("valid", valid, ValidationSplit()), ("train", train, held_out):
            reading = _Pieces(given, quiet, "encoding")
            characters = dict.fromkeys(map(id, given), 0)
            for is_taken, piece in taken.divide(reading):
                characters[id(reading.source)] += len(piece.text)
                writers["valid" if is_taken else split].add(piece, reading.source.separator)
            sources += [{"name": one.name, "split": split, "characters": characters[id(one)]} for one in given]
    report: dict[str, Any] = {"sources": sources, "marks": marks[1]}
    for split, writer in writers.items():
        if writer.tokens < 2:
            raise DataError(
                f"{'nothing' if not writer.characters else 'less than two tokens of text'} is left to "
                f"{PURPOSES[split]} on: give more text"
            )
        counts = ("documents", "characters", "bytes", "tokens")
        report[split] = {name: getattr(writer, name) for name in counts}
        report[split]["taken_out"] = split == "valid" and not valid
    return report

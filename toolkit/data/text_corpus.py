"""Text on the disk for a language model: a tokenizer, and what it makes of texts to train and to validate on.

A directory:

    corpus.json             what was read, and what it became
    tokenizer.*             the tokenizer
    train.*, valid.*        stores of ids, a sequence for each document
    checksums.json          of all of these

It is made in two passes over the sources, the first of which counts, and learns the tokenizer. Neither holds more than
a few megabytes of text and the sample that a SentencePiece vocabulary is learned from, however much there is.
"""

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from toolkit.data.seal import check_seal, seal, sealed
from toolkit.data.store import RaggedStore, RaggedWriter, read_report
from toolkit.data.survey import SLICE, HeldOut, Survey
from toolkit.data.texts import Piece, TextSource, utf8_length
from toolkit.data.token_stream import stream_encoder
from toolkit.data.token_writer import TokenWriter
from toolkit.errors import ConfigError, DataError
from toolkit.files import replaced_directory
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer, Tokenizer, load_tokenizer
from toolkit.tokenization.subword_training import reservoir

Split = Literal["train", "valid"]
TokenizerKind = Literal["unigram", "bpe", "character", "byte"]

REPORT_FILE = "corpus.json"
SPLITS: tuple[Split, ...] = ("train", "valid")

_SAMPLE = 8_000_000  # characters that a SentencePiece vocabulary is learned from
_NARROW = 2**16  # ids below it are stored as uint16


class TextCorpus:
    """Texts as ids, in a directory; made by `build`, and made again from the disk by `open`.

    tokenizer: what made the ids, and belongs to every model that is trained on them. report: what was read and what it
    became, for JSON. fingerprint: a hexadecimal digest (SHA-256) of the ids and the tokenizer.
    """

    def __init__(self, directory: Path):
        """Open a directory without comparing checksums; see `open`."""
        self.directory = directory
        self.report: dict[str, Any] = read_report(directory / REPORT_FILE)
        self.tokenizer: Tokenizer = load_tokenizer(directory)
        self._documents = {split: RaggedStore(directory / split) for split in SPLITS}
        sums = {name: checksum for name, checksum in sealed(directory).items() if name != REPORT_FILE}
        self.fingerprint = hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()

    @staticmethod
    def exists(directory: Path) -> bool:
        """Whether a directory holds a corpus."""
        return (directory / REPORT_FILE).exists()

    @classmethod
    def open(cls, directory: Path) -> "TextCorpus":
        """Open a corpus that was built earlier. Raises DataError if anything in it is missing or damaged."""
        check_seal(directory)
        return cls(directory)

    @classmethod
    def build(
        cls,
        directory: Path,
        train: Sequence[TextSource],
        valid: Sequence[TextSource],
        tokenizer: TokenizerKind,
        vocab_size: int,
        marks: bool,
        valid_share: float = 0.1,
        seed: int = 0,
        quiet: bool = True,
    ) -> "TextCorpus":
        """Read all sources and write a corpus in the place of `directory`, which stays as it was if that fails.

        valid: where there are none, about `valid_share` of the training text is validated on instead of trained on, see
            `Survey.hold_out`; of a text that is not divided into documents, its end: training has the first
            int((1 - valid_share) * n) of n characters.
        tokenizer, vocab_size: what is learned, "unigram" and "bpe" from a random sample (`seed`) of what is trained on.
            A character tokenizer has all characters of both sets and a byte tokenizer nothing to learn, whatever
            `vocab_size` is.
        marks: whether the ids of a document stand between BOS and EOS. quiet: no progress is shown on a terminal.

        Raises DataError for what sources and tokenizers refuse, if one of the sets has less than two tokens and if
        `directory` cannot be written, ConfigError for a share that is not above 0 and at most a half.
        """
        if not 0 < valid_share <= 0.5:
            raise ConfigError(f"valid_share is {valid_share:g}: take out more than 0 and at most 0.5 of the text")
        with replaced_directory(directory) as new:
            began = time.perf_counter()
            learner = _Learner(new / "survey.npy", tokenizer, vocab_size, seed)
            learned, held_out = learner.learn(_Reading(train, quiet), _Reading(valid, quiet), valid_share)
            learned.save(new)
            looked = time.perf_counter()
            report = _encode(new, train, valid, held_out, learned, marks, quiet)
            seconds = {"reading": looked - began, "encoding": time.perf_counter() - looked}
            kind = {"kind": tokenizer, "vocab_size": learned.vocab_size}
            report |= {"tokenizer": kind, "seconds": {name: round(value, 3) for name, value in seconds.items()}}
            text = json.dumps(report, ensure_ascii=False, indent=2) + "\n"
            # Names of files need not be Unicode.
            (new / REPORT_FILE).write_text(text, encoding="utf-8", errors="backslashreplace")
            seal(new)
        return cls(directory)

    def documents(self, split: Split) -> RaggedStore:
        """The ids of a set, a sequence for each document, with its marks if it has some."""
        return self._documents[split]

    def text_bytes(self, split: Split) -> int:
        """The bytes in UTF-8 of the text that the tokens of a set stand for; for bits per byte.

        What stood between two documents, which their marks stand for, is counted too.
        """
        return self.report[split]["bytes"]

    def describe(self) -> list[str]:
        """What was read and what it became, in sentences."""
        lines = []
        for split, name in ("train", "training"), ("valid", "validation"):
            part = self.report[split]
            documents = f"{part['documents']:,} document{'s' * (part['documents'] != 1)}, "
            taken = ", taken out of the training text" if part["taken_out"] else ""
            lines.append(
                f"{name} text: {documents}{part['bytes']:,} bytes, {part['tokens']:,} tokens "
                f"({part['tokens'] / max(part['bytes'], 1):.3f} a byte){taken}"
            )
            sources = [source for source in self.report["sources"] if source["split"] == split]
            for source in sources if len(sources) > 1 else ():
                lines.append(f"    {source['name']}: {source['characters']:,} characters")
        kind, seconds = self.report["tokenizer"], self.report["seconds"]
        size = sum(self.text_bytes(split) for split in SPLITS) / 1e6
        speed = size / max(seconds["encoding"], 1e-3)
        lines.append(f"tokenizer: {kind['kind']}, {kind['vocab_size']:,} tokens; {size:,.1f} MB at {speed:,.0f} MB/s")
        return lines


class _Reading:
    """The pieces of sources one after the other, with a progress bar; `source` is the one that is being read."""

    def __init__(self, sources: Sequence[TextSource], quiet: bool, what: str = "reading"):
        self.sources, self._quiet, self._what = sources, quiet, what
        self.source: TextSource | None = None

    def __iter__(self) -> Iterator[Piece]:
        from tqdm import tqdm

        sizes = [source.bytes for source in self.sources]
        total = None if None in sizes else sum(size for size in sizes if size)
        tqdm.monitor_interval = 0  # its thread would be forked with the workers of training
        # `disable=None`: shown on a terminal only.
        hidden = True if self._quiet or not sizes else None
        bar = tqdm(
            total=total, desc=self._what, unit="B", unit_scale=True, file=sys.stderr, disable=hidden, leave=False
        )
        with bar:
            for source in self.sources:
                self.source = source
                for piece in source:
                    yield piece
                    bar.update(utf8_length(piece.text))


class _Learner:
    """Makes a tokenizer in the first pass."""

    def __init__(self, scratch: Path, kind: TokenizerKind, vocab_size: int, seed: int):
        self._scratch, self._kind, self._vocab_size, self._seed = scratch, kind, vocab_size, seed

    def learn(self, train: _Reading, valid: _Reading, valid_share: float) -> tuple[Tokenizer, HeldOut]:
        """Read all; returns the tokenizer and what is to be taken out of the training texts."""
        tokenizer: Tokenizer | None = None
        sample: list[Any] = []
        with Survey(self._scratch) as survey:
            reading = survey.read(train)
            if self._kind == "character":
                texts = (part.text for together in reading for part in together)
                tokenizer = CharacterTokenizer.train(chain(texts, (piece.text for piece in valid)))
            elif self._kind == "byte":
                tokenizer = ByteTokenizer()
                for _ in reading:
                    pass
            else:
                sample = reservoir(reading, _SAMPLE // SLICE, np.random.default_rng(self._seed))
        held_out = HeldOut() if valid.sources else survey.hold_out(valid_share)
        self._scratch.unlink()
        if self._kind in ("unigram", "bpe"):
            texts = (text for together in sample for text in held_out.without(together))
            tokenizer = SentencePieceTokenizer.train(texts, self._vocab_size, self._kind, self._seed)
        return tokenizer, held_out


def _encode(
    new: Path,
    train: Sequence[TextSource],
    valid: Sequence[TextSource],
    held_out: HeldOut,
    tokenizer: Tokenizer,
    marks: bool,
    quiet: bool,
) -> dict[str, Any]:
    """The second pass: write the ids; returns the report about them."""
    dtype = np.uint16 if tokenizer.vocab_size <= _NARROW else np.int32
    encoder = stream_encoder(tokenizer)
    sources = []
    with ExitStack() as stack:
        writers = {split: TokenWriter(RaggedWriter(new / split, dtype), encoder, marks) for split in SPLITS}
        for writer in writers.values():
            stack.enter_context(writer)
        for split, given, taken in ("valid", valid, HeldOut()), ("train", train, held_out):
            reading = _Reading(given, quiet, "encoding")
            characters = dict.fromkeys(map(id, given), 0)
            for is_taken, piece in taken.divide(reading):
                characters[id(reading.source)] += len(piece.text)
                writers["valid" if is_taken else split].add(piece, reading.source.separator)
            sources += [{"name": one.name, "split": split, "characters": characters[id(one)]} for one in given]
    report: dict[str, Any] = {"sources": sources, "marks": marks}
    for split, writer in writers.items():
        if writer.tokens < 2:
            raise DataError(
                f"{'nothing' if not writer.characters else 'less than two tokens of text'} is left to "
                f"{'train' if split == 'train' else 'validate'} on: give more text"
            )
        counts = ("documents", "characters", "bytes", "tokens")
        report[split] = {name: getattr(writer, name) for name in counts}
        report[split]["taken_out"] = split == "valid" and not valid
    return report

"""The corpus of a translator: the pairs that it is trained and validated on, as text and as ids.

A directory:

    corpus.json             what was read, kept and left out, and why
    source.*, target.*      stores of all texts that passed the filters, tidy, in UTF-8
    lines.npy               the line of each in its source
    train.npy, valid.npy    which of them (rows) are trained and validated on
    ids/                    once encoded: for either set the ids of both sides, and the rows they belong to
    checksums.json          in both directories, of what is in them

Texts and ids are mapped, not read, so that a corpus may be larger than memory.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from toolkit.data.batches import Example
from toolkit.data.corpus import CHECKSUMS_FILE, SPLIT_NAMES, SPLITS, Corpus, Split, check_checksums, finish_corpus
from toolkit.data.filters import Filters, Finding, Findings, sentence
from toolkit.data.pair_builder import PairCorpusBuilder, Provenance
from toolkit.data.pairs import PairSource
from toolkit.data.sentences import sentence_ids
from toolkit.data.store import CHUNK, ArrayWriter, RaggedStore, RaggedWriter, chunks, map_array
from toolkit.errors import ConfigError, DataError
from toolkit.files import replaced_directory
from toolkit.tokenization import Tokenizer

IDS = "ids"


class StoredExamples(Sequence[Example]):
    """Pairs as ids, int32. Batches are made from their lengths alone, which are in memory: 8 bytes a pair."""

    def __init__(self, source: RaggedStore, target: RaggedStore):
        self.source, self.target = source, target

    @property
    def source_lengths(self) -> np.ndarray:
        """Count the tokens of every source, (examples,)."""
        return self.source.lengths

    @property
    def target_lengths(self) -> np.ndarray:
        """Count the tokens of every target, (examples,)."""
        return self.target.lengths

    def target_ids(self, size: int = 1 << 20) -> Iterator[np.ndarray]:
        """Yield the ids of all targets one after the other, in arrays of at most `size`."""
        values = self.target.values
        return (values[begin : begin + size] for begin in range(0, len(values), size))

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Example:
        return Example(self.source[index], self.target[index])


class StoredPairs(Sequence[tuple[str, str]]):
    """Pairs as text, from stores of UTF-8; rows: (pairs,) which of the stored texts they are."""

    def __init__(self, source: RaggedStore, target: RaggedStore, rows: np.ndarray):
        self.source, self.target, self.rows = source, target, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[str, str]:
        row = int(self.rows[index])
        return self.source.text(row), self.target.text(row)


class PairCorpus(Corpus):
    """Training and validation pairs in a directory; made by `build`, and made again from the disk by `open`."""

    def __init__(self, directory: Path, places: Sequence[Callable[[int], str]] | None = None):
        """Open a directory; places: how each source names its lines (see `Provenance`). See `open` for errors."""
        super().__init__(directory)
        self._texts = {side: RaggedStore(directory / side) for side in ("source", "target")}
        self._rows = {split: map_array(directory / f"{split}.npy") for split in SPLITS}
        sources = self._report["sources"]
        places = places or ["{name}, line {{}}".format(**source).format for source in sources]
        self._provenance = Provenance(sources, map_array(directory / "lines.npy"), places)

    @classmethod
    def open(cls, directory: Path) -> "PairCorpus":
        """Open a corpus that was built earlier. Raises DataError if anything in it is missing or damaged."""
        corpus = super().open(directory)
        if corpus.encoded:
            check_checksums(directory / IDS)
        return corpus

    @classmethod
    def build(
        cls,
        directory: Path,
        train: Sequence[PairSource],
        valid: Sequence[PairSource],
        filters: Filters,
        weights: Sequence[float] = (),
        valid_lines: int = 200,
        reverse: bool = False,
    ) -> "PairCorpus":
        """Read all sources and write a corpus in the place of `directory`, which stays as it was if that fails.

        valid: where there are none, `valid_lines` pairs are taken evenly out of the training pairs. Of the filters,
            validation pairs meet only the one for blank sides. weights: how often an epoch has the pairs of each
            training source, see `epoch_batches`; none: once. reverse: sources become targets, and targets sources.

        Raises DataError for what sources and filters refuse, if nothing is left to train or validate on and if
        `directory` cannot be written, ConfigError for weights that do not fit.
        """
        weights = _checked_weights(weights, len(train))
        with replaced_directory(directory) as new:
            with PairCorpusBuilder(new, filters, reverse) as builder:
                for source in valid:
                    builder.read(source, "valid")
                for source, weight in zip(train, weights, strict=True):
                    builder.read(source, "train", weight)
            rows = builder.choose(valid_lines)
            for split in SPLITS:
                np.save(new / f"{split}.npy", rows[split])
            finish_corpus(new, builder.report(rows) | {"fingerprint": _fingerprint(new, rows)})
        return cls(directory, [source.place for source in (*valid, *train)])

    @property
    def report(self) -> dict[str, Any]:
        """The account of what was read, kept and left out, for JSON; by encoding too, once that is done."""
        report = json.loads(json.dumps(self._report))
        if self.encoded:
            encoding = Corpus(self.directory / IDS).report
            for split in SPLITS:
                report[split]["encoded"] = encoding[split]["encoded"]
                report[split]["findings"] |= encoding[split]["findings"]
            report["limits"] |= encoding["limits"]
        return report

    @property
    def fingerprint(self) -> str:
        """A hexadecimal digest (SHA-256) of all pairs that were kept, in their order."""
        return self._report["fingerprint"]

    def describe(self) -> list[str]:
        """Say what was read, kept and left out, in sentences."""
        report, lines = self.report, []
        for split, name in SPLIT_NAMES.items():
            part = report[split]
            taken = f"{part['taken_out']:,} taken out of the training pairs, " if part["taken_out"] else ""
            lines.append(f"{name} pairs: {taken or format(part['read'], ',') + ' read, '}{part['kept']:,} kept")
            for source in self._sources(split):
                weight = f", weight {source['weight']:g}" if source["weight"] != 1 else ""
                lines.append(f"    {source['name']}: {source['read']:,} read, {source['kept']:,} kept{weight}")
            for kind, finding in part["findings"].items():
                lines.append(f"    {sentence(Finding(**finding), kind, report['limits'])}")
        return lines

    def texts(self, split: Split, side: Literal["source", "target"]) -> Iterator[str]:
        """Yield the texts of one side, tidy, read from the disk one by one."""
        return map(self._texts[side].text, self._rows[split].tolist())

    def pairs(self, split: Split) -> list[tuple[str, str]]:
        """List all pairs of a set, in memory."""
        return list(StoredPairs(**self._texts, rows=self._rows[split]))

    @property
    def encoded(self) -> bool:
        """True if the corpus holds ids."""
        return Corpus.exists(self.directory / IDS)

    def encode(self, tokenizer: Tokenizer, max_length: int, ignore_case: bool) -> None:
        """Write the ids of all pairs, in the place of earlier ones; pairs that are too long are left out and counted.

        max_length: the most tokens that either side may have, its end mark included. ignore_case: sources are read in
        lower case. Of a model that knows several languages, each side begins with the token of its own.

        Raises DataError if no pair is left for one of the sets and if the ids cannot be written.
        """
        settings = {"max_tokens": max_length - 1, "ignore_case": ignore_case, "vocab_size": tokenizer.vocab_size}
        report: dict[str, Any] = {"limits": settings}
        with replaced_directory(self.directory / IDS) as new:
            for split in SPLITS:
                findings: Findings = {}
                count = self._encode_split(split, new, tokenizer, max_length, ignore_case, findings)
                if count == 0:
                    raise DataError(
                        f"every {SPLIT_NAMES[split]} pair has a side of more than {max_length - 1} tokens: "
                        "raise --model.max-length, or cut the sentences shorter"
                    )
                report[split] = {"encoded": count, "findings": {kind: asdict(f) for kind, f in findings.items()}}
            own = {*self._checksums, CHECKSUMS_FILE}
            # What somebody has put beside the corpus, which is the tokenizer, belongs to the ids.
            others = [path for path in self.directory.iterdir() if path.is_file() and path.name not in own]
            finish_corpus(new, report, others)

    def _encode_split(
        self, split: Split, new: Path, tokenizer: Tokenizer, max_length: int, ignore_case: bool, findings: Findings
    ) -> int:
        """Write the ids of one set; returns the number of pairs that fit."""
        known = tokenizer.languages
        languages = (known.token("source"), known.token("target")) if known else (None, None)
        with ExitStack() as stack:
            source, target = (
                stack.enter_context(RaggedWriter(new / f"{split}.{side}", np.int32)) for side in ("source", "target")
            )
            kept = stack.enter_context(ArrayWriter(new / f"{split}.rows.npy", np.int64))
            for begin in range(0, len(self._rows[split]), CHUNK):
                rows = self._rows[split][begin : begin + CHUNK]
                pairs = list(StoredPairs(**self._texts, rows=rows))
                sources = sentence_ids(tokenizer.source, (text for text, _ in pairs), ignore_case, languages[0])
                targets = sentence_ids(tokenizer, (text for _, text in pairs), language=languages[1])
                fits = np.array([max(len(s), len(t)) < max_length for s, t in zip(sources, targets, strict=True)])
                for row in rows[~fits].tolist():
                    findings.setdefault("tokens", Finding()).add(self._provenance.place, row)
                chosen = np.flatnonzero(fits).tolist()
                source.extend([sources[index] for index in chosen])
                target.extend([targets[index] for index in chosen])
                kept.append(rows[fits])
        return kept.length

    def examples(self, split: Split) -> StoredExamples:
        """Return the encoded pairs of a set. Raises DataError if the corpus is not encoded, or damaged."""
        ids = self.directory / IDS
        return StoredExamples(RaggedStore(ids / f"{split}.source"), RaggedStore(ids / f"{split}.target"))

    def stores(self, split: Split) -> dict[str, RaggedStore]:
        """Return the ids of both sides of a set, by what they are."""
        examples = self.examples(split)
        return {f"{SPLIT_NAMES[split]} sources": examples.source, f"{SPLIT_NAMES[split]} targets": examples.target}

    def example_texts(self, split: Split) -> StoredPairs:
        """Return the texts behind `examples`, in the same order."""
        return StoredPairs(**self._texts, rows=self._example_rows(split))

    def repeats(self) -> np.ndarray | None:
        """Return the times that an epoch has each training example, (examples,); None where all come once."""
        weights = np.array([source["weight"] for source in self._report["sources"]], np.float32)
        if (weights == 1).all():
            return None
        return weights[self._provenance.sources_of(self._example_rows("train"))]

    def _example_rows(self, split: Split) -> np.ndarray:
        return map_array(self.directory / IDS / f"{split}.rows.npy")


def _checked_weights(weights: Sequence[float], sources: int) -> list[float]:
    if len(weights) not in (0, sources):
        raise ConfigError(
            f"the weights are {len(weights)} and the sources of training pairs {sources}: "
            "give one weight for each source, or none"
        )
    for weight in weights:
        if not 0 < weight < float("inf"):
            raise ConfigError(f"one of the weights is {weight:g}: it must be above 0, and 1 is once in an epoch")
    return list(weights) or [1.0] * sources


def _fingerprint(directory: Path, rows: dict[Split, np.ndarray]) -> str:
    """Digest all pairs: no tidy text has a line feed and none is empty, so that parts cannot run into each other."""
    digest = sha256()
    source, target = RaggedStore(directory / "source"), RaggedStore(directory / "target")
    for split in SPLITS:
        for chunk in chunks(rows[split].tolist()):
            digest.update(b"".join(part for row in chunk for part in (source[row], b"\n", target[row], b"\n")))
        digest.update(b"\n")
    return digest.hexdigest()

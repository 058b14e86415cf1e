"""The builder of a corpus of pairs: reads all sources once, writes what passes the filters, and counts the rest."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.data.corpus import PURPOSES, SPLITS, Split
from toolkit.data.filters import PLACES, Filters, Finding, Findings, among, counted, seen_before, text_hashes
from toolkit.data.pairs import EmbeddedPairs, PairSource, Side
from toolkit.data.sentences import tidy
from toolkit.data.store import ArrayWriter, RaggedWriter, chunks, map_array
from toolkit.errors import ConfigError, DataError

Kept = tuple[bytes, bytes, int]  # source and target in UTF-8, and their line


class Provenance:
    """Tells where the texts of a corpus came from.

    The texts of all sources are numbered through in the order of reading; a text's number is its row.

    accounts: of all sources, as a report has them. lines: (rows,) the line of each text in its source. places: for
    every source, how to say where a line is (see `PairSource.place`).
    """

    def __init__(self, accounts: Sequence[dict], lines: np.ndarray, places: Sequence[Callable[[int], str]]):
        self.begins = np.array([account["begin"] for account in accounts], np.int64)
        self.lines, self.places = lines, places

    def sources_of(self, rows: np.ndarray) -> np.ndarray:
        """Number the sources that rows came from, (rows,). A source without rows begins where the next does."""
        return np.searchsorted(self.begins, rows, side="right") - 1

    def place(self, row: int) -> str:
        """Say where a text came from, for a sentence."""
        return self.places[int(self.sources_of(np.array(row)))](int(self.lines[row]))


class PairCorpusBuilder(ExitStack):
    """Writes the texts of a corpus into a directory, as a context manager, and chooses among them.

    Validation sources are read first. Beside what is on the disk this keeps 16 bytes a pair, and about 30 more while it
    looks for duplicates.
    """

    def __init__(self, directory: Path, filters: Filters, reverse: bool):
        super().__init__()
        self.directory, self.filters, self.reverse = directory, filters, reverse
        self.places: list[Callable[[int], str]] = []  # see `Provenance`
        self.accounts: list[dict[str, Any]] = []  # of each source, for the report
        self._embedded: list[bool] = []  # for every source
        self.rows = 0
        self.findings: dict[Split, Findings] = {split: {} for split in SPLITS}
        self._hashes = [(np.empty(0, "<u8"), np.empty(0, "<u8"))]  # of sources and of pairs
        self._texts = [self.enter_context(RaggedWriter(directory / side, np.uint8)) for side in ("source", "target")]
        self._lines = self.enter_context(ArrayWriter(directory / "lines.npy", np.int64))

    def read(self, source: PairSource, split: Split, weight: float = 1.0) -> None:
        """Read a whole source. Raises DataError for what it refuses and for what the filters refuse."""
        self.places.append(source.place)
        account = {"name": source.name, "split": split, "read": 0, "kept": 0, "weight": weight, "begin": self.rows}
        self._embedded.append(isinstance(getattr(source, "source", source), EmbeddedPairs))
        self.accounts.append(account)
        for chunk in chunks(self._pass(source, split)):
            sources, targets, lines = zip(*chunk, strict=True)
            for writer, texts in zip(self._texts, (sources, targets), strict=True):
                writer.extend(texts)
            self._lines.append(np.array(lines))
            # No tidy text has a line feed, so that two different pairs are never the same text.
            joined = (source + b"\n" + target for source, target in zip(sources, targets, strict=True))
            self._hashes.append((text_hashes(text.decode().lower().encode() for text in sources), text_hashes(joined)))
            self.rows += len(chunk)

    def _pass(self, source: PairSource, split: Split) -> Iterator[Kept]:
        """Yield the pairs of a source that may stay, tidied."""
        for *given, line in source:
            self.accounts[-1]["read"] += 1
            texts = [*map(tidy, given)]
            if not all(texts):
                if self.filters.empty == "refuse":
                    side: Side = "target" if texts[0] else "source"
                    raise DataError(
                        f"{source.place(line, side)} has a blank {side}: write its text, delete the pair, "
                        "or leave such pairs out with --filters.empty drop"
                    )
                objection = "empty"
            else:
                # A validation set stays as it is given: scores on it must mean the same whatever the filters are.
                objection = self.filters.objection(*texts) if split == "train" else None
            if objection:
                self.findings[split].setdefault(objection, Finding()).add(source.place, line)
                continue
            try:
                first, second = (text.encode() for text in texts)
            except UnicodeEncodeError:
                raise DataError(
                    f"{source.place(line)} has half of a surrogate pair, which is not text: correct or delete it"
                ) from None
            yield (second, first, line) if self.reverse else (first, second, line)

    def provenance(self) -> Provenance:
        """Tell where the texts came from; after everything is read and written."""
        return Provenance(self.accounts, map_array(self.directory / "lines.npy"), self.places)

    def choose(self, valid_lines: int) -> dict[Split, np.ndarray]:
        """Choose the rows that are trained and validated on, each ascending; after everything is read and written.

        Where no validation sources were read, `valid_lines` pairs are taken evenly out of the training pairs, but for
        those of the embedded corpus, which has others for that.

        Raises DataError if nothing is left for one of them, ConfigError if nothing should be taken out.
        """
        given = [account["split"] for account in self.accounts].count("valid")
        first = [*(account["begin"] for account in self.accounts), self.rows][given]
        train, valid = np.arange(first, self.rows), np.arange(first)
        sources, pairs = (np.concatenate(column) for column in zip(*self._hashes, strict=True))
        train = self._without("duplicate", train, seen_before(pairs[first:]), self.filters.duplicates)
        self._refuse_nothing("train", train)
        if given == 0:
            kept = np.array(self._embedded)[self.provenance().sources_of(train)]
            if kept.all():  # there are no others to take
                kept[:] = False
            rest, valid = take_out(train[~kept], valid_lines)
            train = np.sort(np.concatenate([train[kept], rest]))
        self._refuse_nothing("valid", valid)
        train = self._without("overlap", train, among(sources[train], sources[valid]), self.filters.overlap)
        self._refuse_nothing("train", train)
        return {"train": train, "valid": valid}

    def report(self, rows: dict[Split, np.ndarray]) -> dict[str, Any]:
        """Account for what was read, left out and chosen; `rows`: what `choose` gave."""
        sources = self.provenance().sources_of(np.concatenate([rows[split] for split in SPLITS]))
        for account, kept in zip(self.accounts, np.bincount(sources, minlength=len(self.accounts)), strict=True):
            account["kept"] = int(kept)
        report: dict[str, Any] = {"sources": self.accounts, "limits": asdict(self.filters)}
        for split in SPLITS:
            read = [account["read"] for account in self.accounts if account["split"] == split]
            report[split] = {
                "read": sum(read),
                "kept": len(rows[split]),
                "taken_out": len(rows[split]) if split == "valid" and not read else 0,
                "findings": {kind: asdict(finding) for kind, finding in self.findings[split].items()},
            }
        return report

    def _without(self, kind: str, rows: np.ndarray, found: np.ndarray, decision: str) -> np.ndarray:
        """Leave out the rows that were found, if so decided; they are counted in any case."""
        if not found.any():
            return rows
        places = [*map(self.provenance().place, rows[found][:PLACES].tolist())]
        self.findings["train"][kind] = Finding(int(found.sum()), decision == "drop", places)
        return rows[~found] if decision == "drop" else rows

    def _refuse_nothing(self, split: Split, rows: np.ndarray) -> None:
        if len(rows):
            return
        found, limits = self.findings[split].items(), asdict(self.filters)
        losses = [counted(finding, kind, limits) for kind, finding in found if finding.dropped]
        reason = f"the filters left out {' and '.join(losses)}" if losses else "the sources have no pairs"
        raise DataError(f"nothing is left to {PURPOSES[split]} on: {reason}")


def take_out(rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Take `count` of the (rows,) out, evenly spaced; returns the others and those. Raises DataError beyond a half."""
    if count < 1:
        raise ConfigError(f"valid_lines is {count}: validation needs at least one pair, or files of its own")
    if count * 2 > len(rows):
        there_are = "1 pair is" if len(rows) == 1 else f"{len(rows)} pairs are"
        raise DataError(f"{there_are} too few to take {count} out for validation: lower --valid-lines")
    taken = np.zeros(len(rows), bool)
    taken[np.arange(count) * len(rows) // count] = True
    return rows[~taken], rows[taken]

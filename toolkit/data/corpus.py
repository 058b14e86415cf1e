"""The base of all corpora on the disk: a directory with a report, and the checksums of everything in it.

corpus.json       what was read, and what it became
checksums.json    the SHA-256 of every file: what was damaged on the disk is noticed before it is trained on
"""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from toolkit.data.store import damaged, read_report
from toolkit.errors import ConfigError
from toolkit.untrusted import Record, Text, open_regular

Split = Literal["train", "valid"]
SPLITS: tuple[Split, ...] = ("train", "valid")
SPLIT_NAMES: dict[Split, str] = {"train": "training", "valid": "validation"}
PURPOSES: dict[Split, str] = {"train": "train", "valid": "validate"}
REPORT_FILE, CHECKSUMS_FILE = "corpus.json", "checksums.json"

_NARROW = 2**16  # ids below it are stored as uint16
_CHECKSUMS = Record(others=Text())


class Corpus:
    """Training and validation data in a directory; each kind has a `build`, which makes it from its sources."""

    def __init__(self, directory: Path):
        """Open a directory without comparing checksums; see `open`."""
        self.directory = directory
        self._report: dict[str, Any] = read_report(directory / REPORT_FILE)
        self._checksums = read_checksums(directory)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.directory}>"

    @staticmethod
    def exists(directory: Path) -> bool:
        """Does a directory hold a corpus?"""
        return (directory / REPORT_FILE).exists()

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Open a corpus that was built earlier. Raises DataError if anything in it is missing or damaged."""
        check_checksums(directory)
        return cls(directory)

    @classmethod
    def made(cls, directory: Path, *arguments: Any, **settings: Any) -> Self:
        """Open the corpus of a directory, or build it where an earlier start has left none; see `build`."""
        return cls.open(directory) if cls.exists(directory) else cls.build(directory, *arguments, **settings)

    @property
    def report(self) -> dict[str, Any]:
        """The account of what was read and what it became, for JSON."""
        return self._report

    @property
    def fingerprint(self) -> str:
        """A hexadecimal digest (SHA-256) of all files but the report."""
        sums = {name: checksum for name, checksum in self._checksums.items() if name != REPORT_FILE}
        return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()

    def _sources(self, split: Split) -> list[dict[str, Any]]:
        """List the report's entries of the sources of a set, where there are several."""
        sources = [source for source in self._report["sources"] if source["split"] == split]
        return sources if len(sources) > 1 else []


def finish_corpus(directory: Path, report: dict[str, Any], others: Iterable[Path] = ()) -> None:
    """Write the report of a corpus whose other files are written, and then the checksums; see `write_checksums`."""
    text = json.dumps(report, ensure_ascii=False, indent=2) + "\n"
    # Names of files need not be Unicode.
    (directory / REPORT_FILE).write_text(text, encoding="utf-8", errors="backslashreplace")
    write_checksums(directory, others)


def write_checksums(directory: Path, others: Iterable[Path] = ()) -> None:
    """Write the SHA-256 of all files in a directory, and of others that belong to them, into it."""
    paths = [path for path in directory.iterdir() if path.is_file()]
    sums = {os.path.relpath(path, directory): _checksum(path) for path in sorted([*paths, *others])}
    (directory / CHECKSUMS_FILE).write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")


def read_checksums(directory: Path) -> dict[str, str]:
    """Read the checksums by file name, relative to the directory.  Raises DataError where there are none."""
    sums = read_report(directory / CHECKSUMS_FILE, _CHECKSUMS)
    if not sums:
        raise damaged(directory / CHECKSUMS_FILE)
    return sums


def check_checksums(directory: Path) -> None:
    """Raise DataError, naming the file, where one is missing or no longer what was written."""
    if path := changed_file(directory, read_checksums(directory)):
        raise damaged(path)


def changed_file(directory: Path, sums: dict[str, str]) -> Path | None:
    """Find the first file, by its name relative to the directory, that is missing or has another checksum."""
    for name, checksum in sums.items():
        path = Path(os.path.normpath(directory / name))
        try:
            if _checksum(path) != checksum:
                return path
        except (OSError, ValueError):
            return path
    return None


def _checksum(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_share(valid_share: float, of: str) -> None:
    """Raise ConfigError for a share of what is trained on that cannot be taken out to validate on."""
    if not 0 < valid_share <= 0.5:
        raise ConfigError(f"valid_share is {valid_share:g}: take out more than 0 and at most 0.5 of the {of}")


def id_type(vocab_size: int) -> type:
    """Return the type that ids are stored in."""
    return np.uint16 if vocab_size <= _NARROW else np.int32

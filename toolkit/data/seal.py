"""Checksums of the files in a directory: what was damaged on the disk is noticed before it is trained on."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from toolkit.data.store import damaged, read_report
from toolkit.untrusted import Record, Text, open_regular

SEAL_FILE = "checksums.json"

_SUMS = Record(others=Text())


def seal(directory: Path, others: Iterable[Path] = ()) -> None:
    """Write the SHA-256 of all files in a directory, and of others that belong to them, into it."""
    paths = [path for path in directory.iterdir() if path.is_file()]
    sums = {os.path.relpath(path, directory): _checksum(path) for path in sorted([*paths, *others])}
    (directory / SEAL_FILE).write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")


def sealed(directory: Path) -> dict[str, str]:
    """The checksums by file name, relative to the directory.  Raises DataError where there are none."""
    sums = read_report(directory / SEAL_FILE, _SUMS)
    if not sums:
        raise damaged(directory / SEAL_FILE)
    return sums


def check_seal(directory: Path) -> None:
    """Raises DataError, naming the file, where one is missing or no longer what was sealed."""
    for name, checksum in sealed(directory).items():
        path = Path(os.path.normpath(directory / name))
        try:
            whole = _checksum(path) == checksum
        except (OSError, ValueError) as error:
            raise damaged(path) from error
        if not whole:
            raise damaged(path)


def _checksum(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

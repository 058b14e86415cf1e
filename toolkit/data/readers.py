"""Text files, line by line. What is wrong with a file is said with its name and the number of the line."""

import codecs
import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from toolkit.errors import DataError
from toolkit.files import atomic_writer

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_FOREIGN_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """The lines of a UTF-8 file in Unicode normal form C, without their ends.

    Only LF and CR LF end a line. `str.splitlines` would also cut at U+2028, U+0085 and others, which occur in
    ordinary text, and every later line would be paired with the wrong translation. A byte order mark is dropped.

    Raises DataError, naming the file and where it applies the line, if the file is missing, is a directory, cannot be
    read, is empty or is not UTF-8.
    """
    data = _read_bytes(path).removeprefix(codecs.BOM_UTF8)
    if not data:
        raise DataError(f"{path} is empty: it needs at least one line")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line} is not UTF-8 (byte 0x{data[error.start]:02X}): save the file as UTF-8"
        ) from error
    # Normal form C never joins characters across a line end, so the whole text can be normalised at once.
    lines = unicodedata.normalize("NFC", text).split("\n")
    if not lines[-1]:
        lines.pop()  # what follows the last line end is not a line
    return [line.removesuffix("\r") for line in lines]


def read_pairs(source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """The pairs (source, target) of two files of which line i of one translates line i of the other.

    Raises DataError, naming file and line, for what `read_lines` refuses, for files of unequal length and for empty
    lines.
    """
    sources, targets = read_lines(source_path), read_lines(target_path)
    if len(sources) != len(targets):
        (short, short_path), (long, long_path) = sorted(
            [(len(sources), source_path), (len(targets), target_path)], key=lambda side: side[0]
        )
        raise DataError(
            f"{short_path} has {_count(short)}, {long_path} has {long}: "
            f"line {short + 1} of {long_path} has no translation"
        )
    for path, lines in (source_path, sources), (target_path, targets):
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                raise DataError(f"{path}, line {number} is empty: write its text, or delete the line from both files")
    return list(zip(sources, targets, strict=True))


def write_lines_atomically(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    """Write lines as UTF-8 with LF ends, under another name that becomes `path` when all of them are on the disk.

    Raises DataError if `path` cannot be written, and ValueError for a line that contains a line feed: it would be
    read as two. In both cases, and if `lines` itself raises, `path` is as it was before.
    """
    with atomic_writer(path) as file:
        for number, line in enumerate(lines, start=1):
            if "\n" in line:
                raise ValueError(f"line {number} for {path} contains a line feed: {line!r:.60}")
            file.write(line.encode("utf-8") + b"\n")


def _read_bytes(path: str | os.PathLike[str]) -> bytes:
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist: check the path") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a directory: give the path of a text file") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    for mark, name in _FOREIGN_MARKS.items():
        if data.startswith(mark):
            raise DataError(f"{path} is {name}, not UTF-8: save the file as UTF-8")
    if data.count(0) * 4 > len(data):  # in UTF-16 without a mark, every second byte of Latin text is zero
        raise DataError(f"{path} is not a UTF-8 text, it may be UTF-16: save the file as UTF-8")
    return data


def _count(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"

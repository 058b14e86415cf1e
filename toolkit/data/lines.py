"""Lines of text: the one reader of files, and of streams that are answered while they arrive.

Only LF and CR LF end a line. `str.splitlines` would also cut at U+2028, U+0085 and others, which occur in ordinary
text, and every later line would be paired with the wrong translation. Errors name the file and the line.
"""

import codecs
import gzip
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from toolkit.display import counted
from toolkit.errors import DataError
from toolkit.files import atomic_writer
from toolkit.tokenization.normal_form import normal_form
from toolkit.untrusted import NotAFileError, open_regular

# The most characters of a line. A file whose line ends were lost is one endless line, and is to be refused before it
# fills the memory.
LONGEST_LINE = 100_000
LONGEST_TEXT = 10_000_000  # of a text that is a row of a table, which is held in memory as a whole

_CHUNK = 1 << 20
_LONGEST_ARRIVING = 1 << 24  # bytes of a line of a stream: memory stays bounded when that turns out to be no text
_HANDED_OVER = re.compile("/dev/(?:stdin|fd/[0-9]+)")

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_FOREIGN_MARKS = {
    codecs.BOM_UTF32_LE: "is UTF-32, not UTF-8: save the file as UTF-8",
    codecs.BOM_UTF32_BE: "is UTF-32, not UTF-8: save the file as UTF-8",
    codecs.BOM_UTF16_LE: "is UTF-16, not UTF-8: save the file as UTF-8",
    codecs.BOM_UTF16_BE: "is UTF-16, not UTF-8: save the file as UTF-8",
    b"\x1f\x8b": "is compressed (gzip), not a text file: unpack it first",
    b"PK\x03\x04": "is a zip archive or an office document, not a text file: save it as plain text in UTF-8",
}


def iter_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Read the lines of a UTF-8 file, without their ends, in Unicode normal form C, when they are asked for.

    A byte order mark is dropped.

    Raises DataError, naming the file and where it applies the line, if the file is missing, is a directory, cannot be
    read, is empty or is not UTF-8, and for a line of more than LONGEST_LINE characters; each when it is reached.
    """
    with opened(path) as file:
        yield from lines_of(file, path)


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Read all lines of a file, as `iter_lines` does."""
    return list(iter_lines(path))


def count_lines(path: str | os.PathLike[str]) -> int:
    """Count the lines that `iter_lines` gives, without decoding them all.

    Raises DataError if the file is missing, is a directory, cannot be read, is empty or shows in its first megabyte
    that it is not UTF-8: of something that is no text, the number of lines would be a riddle.
    """
    count, last = 0, b""
    with opened(path) as file:
        for chunk in chunks_of(file, path):
            if not last:
                decoded_part(chunk, path)
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count + (last != b"\n")  # a last line needs no end


def lines_of(
    file: BinaryIO, path: str | os.PathLike[str], longest: int = LONGEST_LINE, verbatim: bool = False
) -> Iterator[str]:
    """Read the lines of an open file, as `iter_lines` does; `path` is its name in errors.

    longest: the most characters of a line; more than that is a DataError. verbatim: lines keep the CR of CR LF, and are
    not in normal form, which can make a separator out of a sign that is none (U+037E is a semicolon then).
    """
    most = 4 * longest + 1  # a character has at most four bytes, and a CR may follow
    for block, before in _blocks(chunks_of(file, path), most, lambda line: _too_long(path, line, longest)):
        lines = _split(block, path, before, verbatim)
        if max(map(len, lines)) > longest:
            too_long = (number for number, line in enumerate(lines, 1) if len(line.removesuffix("\r")) > longest)
            if number := next(too_long, None):
                raise _too_long(path, before + number, longest)
        yield from lines


def arriving_lines(stream: BinaryIO, name: str) -> Iterator[list[str]]:
    """Read the lines of a stream, as many at a time as have arrived, as they stand (not in normal form).

    A file comes in large pieces; a pipe that stays open is answered while it is being written to.

    Raises DataError, naming the line, for what is not UTF-8 or has no end.
    """
    pieces = chunks_of(stream, name, live=True)
    for block, before in _blocks(pieces, _LONGEST_ARRIVING, lambda line: _endless(name, line, "is it a text file?")):
        yield [line.removesuffix("\r") for line in _split(block, name, before, verbatim=True)]


def arriving_bytes(stream: BinaryIO, name: str, advice: str) -> Iterator[bytes]:
    """Read the lines of a stream, when they arrive, as bytes: one that is not UTF-8 is then wrong by itself.

    Raises DataError, which ends with `advice`, for a line without end.
    """
    pieces = iter(lambda: stream.read1(_CHUNK), b"")
    for block, _ in _blocks(pieces, _LONGEST_ARRIVING, lambda line: _endless(name, line, advice)):
        yield from block.removesuffix(b"\n").split(b"\n")


@contextmanager
def opened(path: str | os.PathLike[str], packed: bool = False) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacked where it is packed by gzip.

    Raises DataError for what the system refuses, now or while it is read, and for a pipe or a device, unless the shell
    hands it over: `<(zcat texts.gz)`.
    """
    given = _HANDED_OVER.fullmatch(os.fspath(path))
    try:
        with Path(path).open("rb") if given else open_regular(path) as file:
            yield gzip.GzipFile(fileobj=file) if packed else file
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist: check the path") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a directory: give the path of a text file") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} is cut off, damaged or not compressed by gzip: copy it again, or pack it anew"
        ) from error
    except NotAFileError as error:
        raise DataError(f"{path} is a pipe or a device, not a file: write what it gives to one first") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def chunks_of(file: BinaryIO, path: str | os.PathLike[str], live: bool = False) -> Iterator[bytes]:
    """Read the bytes of a file without a byte order mark, a megabyte at a time; or, if live, as much as has arrived.

    Raises DataError if their beginning shows that they are not UTF-8; and, unless they are live, if there are none.
    """
    read = file.read1 if live else file.read
    first = read(_CHUNK)
    while live and len(first) < 4 and b"\n" not in first and (more := read(_CHUNK)):  # a mark may arrive in parts
        first += more
    for mark, problem in _FOREIGN_MARKS.items():
        if first.startswith(mark):
            raise DataError(f"{path} {problem}")
    first = first.removeprefix(codecs.BOM_UTF8)
    if not first and not live:
        raise DataError(f"{path} is empty: it needs at least one line")
    if first.count(0) * 4 > len(first):  # in UTF-16 without a mark, every second byte of Latin text is zero
        raise DataError(f"{path} is full of NUL bytes, as UTF-16 is, or no text at all: save it as text in UTF-8")
    yield first
    while chunk := read(_CHUNK):
        yield chunk


def _blocks(chunks: Iterable[bytes], most: int, endless: Callable[[int], DataError]) -> Iterator[tuple[bytes, int]]:
    """Cut bytes after line ends: blocks of whole lines, of which the last may lack its end, and the lines before each.

    Raises what `endless` makes of its number for a line of more than `most` bytes that has not ended.
    """
    done, begun = 0, b""
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            block, begun = begun + chunk[:end], b""
            yield block, done
            done += block.count(b"\n")
        begun += chunk[end:]
        if len(begun) > most:
            raise endless(done + 1)
    if begun:
        yield begun, done


def _split(block: bytes, path: str | os.PathLike[str], before: int, verbatim: bool) -> list[str]:
    """Cut a block of whole lines, of which the last may lack its end; `before`: how many lines precede it."""
    text = decoded(block, path, before)
    # Normal form C never joins characters across a line end, so many lines can be normalised at once.
    lines = (text if verbatim else normal_form(text)).split("\n")
    if not lines[-1]:
        lines.pop()  # what follows the last line end is not a line
    return lines if verbatim else [line.removesuffix("\r") for line in lines]


def decoded(data: bytes, path: str | os.PathLike[str], lines_before: int = 0) -> str:
    """Decode UTF-8. Raises DataError naming the line, if `lines_before` lines of the file precede `data`."""
    return decoded_part(data, path, lines_before, whole=True)[0]


def decoded_part(
    data: bytes, path: str | os.PathLike[str], lines_before: int = 0, whole: bool = False
) -> tuple[str, int]:
    """Decode the beginning of some UTF-8, unless it is whole without the character that is cut at its end.

    Returns the text, and how many bytes it takes. Raises DataError as `decoded` does.
    """
    try:
        return codecs.utf_8_decode(data, "strict", whole)
    except UnicodeDecodeError as error:
        line = lines_before + data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line} is not UTF-8 (byte 0x{data[error.start]:02X}): save the file as UTF-8"
        ) from error


def _too_long(path: str | os.PathLike[str], line: int, longest: int) -> DataError:
    what = "sentence" if longest == LONGEST_LINE else "text"
    return DataError(f"{path}, line {line} has more than {longest:,} characters: is it one {what} a line?")


def _endless(name: str, line: int, advice: str) -> DataError:
    return DataError(f"{name}, line {line} has no end: {advice}")


def check_aligned(source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]) -> None:
    """Raise DataError where two files, of which line i of one translates line i of the other, are of unequal length."""
    (short, short_path), (long, long_path) = sorted(
        ((count_lines(path), path) for path in (source_path, target_path)), key=lambda side: side[0]
    )
    if short != long:
        raise DataError(
            f"{short_path} has {counted(short)}, {long_path} has {long}: "
            f"line {short + 1} of {long_path} has no translation"
        )


def read_pairs(source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Read the pairs (source, target) of two files of which line i of one translates line i of the other.

    Raises DataError, naming file and line, for what `read_lines` refuses, for files of unequal length and for empty
    lines.
    """
    check_aligned(source_path, target_path)
    sources, targets = read_lines(source_path), read_lines(target_path)
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


def path_mode(path: Path) -> int:
    """Find out what a path names, for `stat`; 0 for nothing."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def refuse_pipe(path: Path) -> None:
    """Raise DataError for what can be read only once."""
    mode = path_mode(path)
    if mode and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DataError(f"{path} is a pipe or a device, and texts are read more than once: write them to a file first")


def digest_of_files(paths: Iterable[Path]) -> str:
    """Digest the contents of files (SHA-256), in their order; returns it in hexadecimal."""
    digest = hashlib.sha256()
    for path in paths:
        with opened(path) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()

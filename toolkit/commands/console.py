"""Standard input and output as streams of lines in UTF-8.

Three doors lead to standard output. `emit` is for facts: names and values out of files, whose control characters are
always written out. `emit_results` and `emit_text` are for what models and people write: it goes to a file or a pipe as
it is, and to a terminal without what would steer it. `emit_page` is for lines that have colours of our own.
"""

import codecs
import select
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

from toolkit.display import escaped, escaped_text, tell
from toolkit.errors import DataError
from toolkit.process import discard

_PIECE = 1 << 20
_REFILL = 0.005  # seconds that a busy program at the other end of a pipe may take to write on
_LONGEST_LINE = 1 << 24  # bytes: memory stays bounded when the input turns out to be no text at all


def emit(lines: Iterable[str]) -> None:
    """Print facts and flush.  Raises DataError where standard output takes no more, BrokenPipeError if nobody reads."""
    emit_page(map(escaped, lines))


def emit_page(lines: Iterable[str]) -> None:
    """Print lines that are known to steer nothing but colours, as `emit` does."""
    _write("".join(f"{line}\n" for line in lines))


def emit_results(lines: Iterable[str]) -> None:
    """Print results, each of which may have several lines, as `emit` does."""
    emit_text("".join(f"{line}\n" for line in lines))


def emit_text(text: str) -> None:
    """Print a part of a result, as `emit` does."""
    _write(escaped_text(text) if sys.stdout is not None and sys.stdout.isatty() else text)


def _write(text: str) -> None:
    if sys.stdout is None:
        raise DataError("standard output is closed: the results have nowhere to go")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise DataError(f"standard output cannot be written: {error.strerror}") from error


def discard_output() -> None:
    """Send what is left for standard output to nowhere."""
    discard(sys.stdout)


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = (0,)) -> list[str]:
    """The rows of a table as lines; columns whose numbers are in `left` have their cells at the left."""
    rows = [[escaped(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (
        [cell.ljust(width) if place in left else cell.rjust(width) for place, (cell, width) in enumerate(pairs)]
        for pairs in (zip(row, widths, strict=True) for row in rows)
    )
    return ["  ".join(cells).rstrip() for cells in padded]


def typed_line() -> str:
    """The next line of the terminal; empty at its end.  Raises DataError for what is not UTF-8."""
    return line_or_end() or ""


def line_or_end() -> str | None:
    """As `typed_line`, and None at the end."""
    if sys.stdout.isatty():
        with suppress(ImportError):  # not on every system
            import readline  # noqa: F401  (importing it gives input() its line editing and history)
        prompt = "> "
    else:
        print("> ", end="", file=sys.stderr, flush=True)  # input() would print it among the results
        prompt = ""
    try:
        return input(prompt)
    except EOFError:
        tell("")
        return None
    except UnicodeDecodeError as error:
        raise DataError("the terminal sends text that is not UTF-8: set its encoding to UTF-8") from error


def arriving_lines(stream: BinaryIO, name: str) -> Iterator[list[str]]:
    """The lines of a stream, as many at a time as have arrived.

    A file comes in large pieces; a pipe that stays open is answered while it is being written to. As in a file, only
    LF and CR LF end a line, and a byte order mark is dropped.

    Raises DataError, naming the line, for what is not UTF-8 or has no end.
    """
    count, rest = 0, b""
    while piece := stream.read1(_PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise DataError(f"{name}, line {count + len(lines) + 1} has no end: is it a text file?")
        yield [_decoded(line, name, count + index) for index, line in enumerate(lines, start=1)]
        count += len(lines)
    if rest:
        yield [_decoded(rest, name, count + 1)]


def has_more(stream: BinaryIO) -> bool:
    """Whether reading the stream gives something, or its end, almost at once.  False where the system cannot say."""
    try:
        return bool(select.select([stream], [], [], _REFILL)[0])
    except (OSError, ValueError):  # a stream that is no file; on Windows, one that is no socket
        return False


def _decoded(line: bytes, name: str, number: int) -> str:
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    if line.count(0) * 4 > len(line):  # in UTF-16, every second byte of Latin text is zero
        raise DataError(f"{name}, line {number} is full of NUL bytes, as UTF-16 is: give the text in UTF-8")
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise DataError(f"{name}, line {number} is not UTF-8 (byte 0x{byte:02X}): give the text in UTF-8") from error

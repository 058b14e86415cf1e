"""Standard input and output as streams of lines in UTF-8.

Three doors lead to standard output. `emit` is for facts: names and values out of files, whose control characters are
always written out. `emit_results` and `emit_text` are for what models and people write: it goes to a file or a pipe as
it is, and to a terminal without what would steer it. `emit_page` is for lines that have colours of our own.
"""

import select
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO

from toolkit.display import escaped, escaped_text, tell
from toolkit.errors import DataError
from toolkit.process import discard

_REFILL = 0.005  # seconds that a busy program at the other end of a pipe may take to write on


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
        discard(sys.stdout)
        raise DataError(f"standard output cannot be written: {error.strerror}") from error


def typed_lines() -> Iterator[str]:
    """Yield the lines of the terminal up to its end, or a blank one.  Raises DataError for what is not UTF-8."""
    while (line := line_or_end() or "").strip():
        yield line


def line_or_end() -> str | None:
    """Read the next line of the terminal; None at its end.  Raises DataError for what is not UTF-8."""
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


def has_more(stream: BinaryIO) -> bool:
    """Say if reading the stream gives something, or its end, almost at once.  False where the system cannot say."""
    try:
        return bool(select.select([stream], [], [], _REFILL)[0])
    except (OSError, ValueError):  # a stream that is no file; on Windows, one that is no socket
        return False

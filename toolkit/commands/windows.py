"""Input of any length as windows: so many lines are sorted by length, worked on and written before the next."""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from toolkit.commands.console import arriving_lines, has_more
from toolkit.data.readers import LONGEST_LINE, count_lines, iter_lines, lines_of, opened
from toolkit.display import counted, tell
from toolkit.errors import ConfigError, DataError

WINDOW = 2048


class Window(NamedTuple):
    """Lines that follow each other in an input, and how many came before them."""

    lines: list[str]
    name: str  # of the input
    before: int = 0
    spoken_before: int = 0  # those that were not blank
    partners: list[str] | None = None  # the same lines of a second file

    def part(self, begin: int, end: int) -> "Window":
        """Some of the lines, which know how many came before them."""
        spoken = _spoken(self.lines[:begin])
        partners = self.partners and self.partners[begin:end]
        return Window(self.lines[begin:end], self.name, self.before + begin, self.spoken_before + spoken, partners)

    def where(self, number: int) -> str:
        """What an error calls a line of the window; the first has number 1."""
        return f"{self.name}, line {self.before + number}"


def file_windows(
    path: Path | None, partner: Path | None = None, needed: str = "", longest: int = LONGEST_LINE
) -> Iterator[Window | None]:
    """The windows of a file, and of a second one that has as many lines: `needed` says what they are to the first.

    Without a file, and where it is called -, the lines are those of standard input; None among its windows says that
    more than what has arrived so far would have to be waited for. longest: the most characters of a line; of a line
    that has more than LONGEST_LINE, so many and one are kept.

    Raises DataError where one has more lines than the other; files that can be read twice are counted first.
    """
    if path is None or is_input(path):
        return _windows(_arriving(_standard_input()), "standard input", partner, needed, longest)
    if is_same_file(path):
        raise ConfigError(f"{path} is where standard output goes, which would change it as it is read: write elsewhere")
    if partner and path.is_file() and partner.is_file():
        counts = count_lines(path), count_lines(partner)
        if counts[0] != counts[1]:
            raise DataError(f"{path} has {counted(counts[0])}, {partner} {counts[1]:,}: each line needs its {needed}")
    lines = _lines(path, longest)
    return _windows(iter(lambda: list(islice(lines, WINDOW)), []), str(path), partner, needed, longest)


def text_windows(texts: Iterable[str], partner: Path | None = None, needed: str = "") -> Iterator[Window]:
    """The lines of texts that were given as words of the command."""
    lines = [line for text in texts for line in text.split("\n")]
    pieces = (lines[begin : begin + WINDOW] for begin in range(0, len(lines), WINDOW))
    return _windows(pieces, "the text", partner, needed)


def is_input(path: Path | None) -> bool:
    """Whether a path means standard input."""
    return str(path) == "-"


def is_same_file(one: Path, other: Path | None = None) -> bool:
    """Whether two names are one file; without the second, whether standard output writes to it."""
    with suppress(OSError, ValueError, AttributeError):  # where one is no file
        there = os.fstat(sys.stdout.fileno()) if other is None else other.stat()
        return stat.S_ISREG(there.st_mode) and os.path.samestat(one.stat(), there)
    return False


def check_inputs(**paths: Path | None) -> None:
    """Raises ConfigError where two of the flags with these names are standard input."""
    named = [f"--{name.replace('_', '-')}" for name, path in paths.items() if is_input(path)]
    if len(named) > 1:
        raise ConfigError(f"{' and '.join(named)} are both standard input: give one of them a file")


def all_lines(path: Path) -> list[str]:
    """The lines of a text file, as `read_lines` gives them; - is standard input."""
    return list(lines_of(_standard_input(), "standard input") if is_input(path) else iter_lines(path))


def one_text(words: list[str]) -> list[str]:
    """Take several words that have no space in them for one text whose quotation marks were left out."""
    return [" ".join(words)] if len(words) > 1 and all(len(word.split()) == 1 for word in words) else words


def tell_one_text(words: list[str], quiet: bool) -> None:
    """Say what `one_text` has made of the words, when that has gone well."""
    [text, *others] = one_text(words) or [""]
    if len(words) > 1 and not others and not quiet:
        tell(f'toolkit: taken as one text, "{text}": words that are texts of their own go on lines of their own')


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise DataError("standard input is closed: give a text or a file")
    return sys.stdin.buffer


def _lines(path: Path, longest: int) -> Iterator[str]:
    if is_input(path):
        yield from (line for lines in arriving_lines(_standard_input(), "standard input") for line in lines)
        return
    with opened(path) as file:
        yield from (line[: LONGEST_LINE + 1] for line in lines_of(file, path, longest))


def _arriving(stream: BinaryIO) -> Iterator[list[str] | None]:
    """As many lines at a time as have arrived, up to a window: a pipe that stays open is answered."""
    lines: list[str] = []
    for arrived in arriving_lines(stream, "standard input"):
        lines += arrived
        complete = len(lines) // WINDOW * WINDOW
        for begin in range(0, complete, WINDOW):
            yield lines[begin : begin + WINDOW]
        del lines[:complete]
        if not has_more(stream):
            if lines:
                yield lines
            lines = []
            yield None
    if lines:
        yield lines


def _windows(
    pieces: Iterable[list[str] | None],
    name: str,
    partner: Path | None,
    needed: str,
    longest: int = LONGEST_LINE,
) -> Iterator[Window | None]:
    before = spoken = 0
    others = _lines(partner, longest) if partner else None
    for lines in pieces:
        if lines is None:
            yield None
            continue
        partners = None if others is None else list(islice(others, len(lines)))
        if partners is not None and len(partners) < len(lines):
            count = before + len(partners)
            raise DataError(f"{partner} has {counted(count)}, {name} has more: line {count + 1} has no {needed}")
        yield Window(lines, name, before, spoken, partners)
        before += len(lines)
        spoken += _spoken(lines)
    if others is not None and next(others, None) is not None:
        raise DataError(f"{partner} has more than the {before:,} lines of {name}: each line needs one {needed}")


def _spoken(lines: Iterable[str]) -> int:
    """How many are not blank."""
    return sum(not line.isspace() for line in lines if line)


def with_progress(results: Iterator[list[str]], total: Callable[[], int | None], shown: bool) -> Iterator[list[str]]:
    """The results as they are; where `shown`, with a bar on a terminal: how many, how fast, how long still.

    Each result is a list with one entry for a line of the input, of which there are total() where that is known.
    """
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield from results
        return
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # its thread would be in the way of forking
    with tqdm(total=total(), unit=" lines", file=sys.stderr, dynamic_ncols=True) as bar:
        for result in results:
            yield result
            bar.update(len(result))


def line_count(path: Path | None) -> int | None:
    """The lines of a file where they can be counted before it is read."""
    return count_lines(path) if path and not is_input(path) and path.is_file() else None

"""Input of any length as windows: so many lines are sorted by length, worked on and written before the next."""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from toolkit.commands.console import arriving_lines, has_more
from toolkit.data.readers import count_lines, iter_lines
from toolkit.display import counted
from toolkit.errors import DataError

WINDOW = 2048


class Window(NamedTuple):
    """Lines that follow each other in an input, and how many came before them."""

    lines: list[str]
    name: str  # of the input
    before: int = 0
    spoken_before: int = 0  # those that were not blank
    partners: list[str] | None = None  # the same lines of a second file

    def where(self, number: int) -> str:
        """What an error calls a line of the window; the first has number 1."""
        return f"{self.name}, line {self.before + number}"


def file_windows(path: Path, partner: Path | None = None, needed: str = "") -> Iterator[Window]:
    """The windows of a file, and of a second one that has as many lines: `needed` says what they are to the first.

    Raises DataError where one has more lines than the other; files that can be read twice are counted first.
    """
    if partner and path.is_file() and partner.is_file():
        counts = count_lines(path), count_lines(partner)
        if counts[0] != counts[1]:
            raise DataError(f"{path} has {counted(counts[0])}, {partner} {counts[1]:,}: each line needs its {needed}")
    lines = iter_lines(path)
    return _windows(iter(lambda: list(islice(lines, WINDOW)), []), str(path), partner, needed)


def text_windows(texts: Iterable[str], partner: Path | None = None, needed: str = "") -> Iterator[Window]:
    """The lines of texts that were given as words of the command."""
    lines = [line for text in texts for line in text.split("\n")]
    pieces = (lines[begin : begin + WINDOW] for begin in range(0, len(lines), WINDOW))
    return _windows(pieces, "the text", partner, needed)


def input_windows(partner: Path | None = None, needed: str = "") -> Iterator[Window | None]:
    """The windows of standard input; None where more than what has arrived so far would have to be waited for."""
    if sys.stdin is None:
        raise DataError("standard input is closed: give a text or --file")
    return _windows(_arriving(), "standard input", partner, needed)


def _arriving() -> Iterator[list[str] | None]:
    """As many lines at a time as have arrived, up to a window: a pipe that stays open is answered."""
    lines: list[str] = []
    for arrived in arriving_lines(sys.stdin.buffer, "standard input"):
        lines += arrived
        complete = len(lines) // WINDOW * WINDOW
        for begin in range(0, complete, WINDOW):
            yield lines[begin : begin + WINDOW]
        del lines[:complete]
        if not has_more(sys.stdin.buffer):
            if lines:
                yield lines
            lines = []
            yield None
    if lines:
        yield lines


def _windows(
    pieces: Iterable[list[str] | None], name: str, partner: Path | None, needed: str
) -> Iterator[Window | None]:
    before = spoken = 0
    others = iter_lines(partner) if partner else None
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
        spoken += sum(not line.isspace() for line in lines if line)
    if others is not None and next(others, None) is not None:
        raise DataError(f"{partner} has more than the {before:,} lines of {name}: each line needs one {needed}")


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
    return count_lines(path) if path and path.is_file() else None

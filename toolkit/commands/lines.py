"""Input of lines, of any length: read in windows, of which each is worked on and written before the next is read.

`--long-lines` decides about lines that are longer than the model reads: refused, skipped or cut off, and counted.
"""

import os
import re
import stat
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from toolkit.commands.console import has_more
from toolkit.data.lines import LONGEST_LINE, LONGEST_TEXT, arriving_lines, count_lines, iter_lines, lines_of, opened
from toolkit.display import counted, json_text, tell
from toolkit.errors import ConfigError, DataError, LengthError
from toolkit.launcher import check_standard_input

# A window ends after so many lines, or characters: long lines have many sentences, and all are translated together.
WINDOW, CHARACTERS = 2048, 1 << 20

LongLines = Literal["refuse", "skip", "truncate"]


class Window(NamedTuple):
    """Lines that follow each other in an input, and how many came before them."""

    lines: list[str]
    name: str  # of the input
    before: int = 0
    spoken_before: int = 0  # those that were not blank
    partners: list[str] | None = None  # the same lines of a second file

    def part(self, begin: int, end: int) -> "Window":
        """Cut out some of the lines."""
        spoken = _spoken(self.lines[:begin])
        partners = self.partners and self.partners[begin:end]
        return Window(self.lines[begin:end], self.name, self.before + begin, self.spoken_before + spoken, partners)

    def where(self, number: int) -> str:
        """Name a line of the window in an error; the first has number 1."""
        return f"{self.name}, line {self.before + number}"


def file_windows(
    path: Path | None,
    partner: Path | None = None,
    needed: str = "",
    long_lines: LongLines = "refuse",
    live: bool = True,
) -> Iterator[Window | None]:
    """Read a file in windows, and a second one that has as many lines: `needed` names what they are to the first.

    Without a file, and where it is called -, the lines are those of standard input; None among its windows says that
    more than what has arrived so far would have to be waited for; not live, they are those of a file. Of a line that
    has more than LONGEST_LINE characters, and is not to be refused, that number and one are kept.

    Raises DataError where one has more lines than the other; files that can be read twice are counted first.
    """
    longest = LONGEST_LINE if long_lines == "refuse" else LONGEST_TEXT
    if path is None or is_input(path):
        pieces = _arriving(standard_input()) if live else _pieces(_lines(Path("-"), longest))
        return _windows(pieces, "standard input", partner, needed, longest)
    if is_same_file(path):
        raise ConfigError(f"{path} is where standard output goes, which would change it as it is read: write elsewhere")
    if partner and path.is_file() and partner.is_file():
        counts = count_lines(path), count_lines(partner)
        if counts[0] != counts[1]:
            raise DataError(f"{path} has {counted(counts[0])}, {partner} {counts[1]:,}: each line needs its {needed}")
    return _windows(_pieces(_lines(path, longest)), str(path), partner, needed, longest)


def text_windows(texts: Iterable[str], partner: Path | None = None, needed: str = "") -> Iterator[Window]:
    """Divide texts that were given as words of the command."""
    lines = [line for text in texts for line in text.split("\n")]
    return _windows(_pieces(lines), "the text", partner, needed)


def is_input(path: Path | None) -> bool:
    """Say if a path means standard input."""
    return str(path) == "-"


def is_same_file(one: Path, other: Path | None = None) -> bool:
    """Say if two names are one file, or, without the second, if standard output writes to it."""
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
    """Read all lines of a text file, as `read_lines` does; - is standard input."""
    return list(lines_of(standard_input(), "standard input") if is_input(path) else iter_lines(path))


def one_text(words: list[str]) -> list[str]:
    """Join several words that have no space in them: one text whose quotation marks were left out."""
    return [" ".join(words)] if len(words) > 1 and all(len(word.split()) == 1 for word in words) else words


def tell_one_text(words: list[str], quiet: bool) -> None:
    """Tell that `one_text` has joined the words, when that has gone well."""
    [text, *others] = one_text(words) or [""]
    if len(words) > 1 and not others and not quiet:
        tell(f'toolkit: taken as one text, "{text}": words that are texts of their own go on lines of their own')


def seed_note(seed: int) -> str:
    """Say how to repeat what was drawn by a seed that nobody has given."""
    return f"seed {seed}: --seed {seed} repeats it"


def standard_input(instead: str = "a text or a file") -> BinaryIO:
    """Give standard input as bytes.  Raises DataError where it is closed, ConfigError under a launcher of ranks.

    instead: what the user should give.
    """
    check_standard_input(instead)
    if sys.stdin is None:
        raise DataError(f"standard input is closed: give {instead}")
    return sys.stdin.buffer


def _lines(path: Path, longest: int) -> Iterator[str]:
    if is_input(path):
        yield from (line for lines in arriving_lines(standard_input(), "standard input") for line in lines)
        return
    with opened(path) as file:
        yield from (line[: LONGEST_LINE + 1] for line in lines_of(file, path, longest))


def _arriving(stream: BinaryIO) -> Iterator[list[str] | None]:
    """Yield the lines that have arrived, up to a window at a time: a pipe that stays open is answered."""
    lines: list[str] = []
    for arrived in arriving_lines(stream, "standard input"):
        *complete, lines = [*_pieces([*lines, *arrived])] or [[]]
        yield from complete
        if not has_more(stream):
            if lines:
                yield lines
            lines = []
            yield None
    if lines:
        yield lines


def _pieces(lines: Iterable[str]) -> Iterator[list[str]]:
    """Divide lines into those of a window each."""
    piece: list[str] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if len(piece) >= WINDOW or size >= CHARACTERS:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


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
    return sum(not line.isspace() for line in lines if line)


class Answer(NamedTuple):
    """The answer to a window: an output for every line, and the names of the lines that were too long."""

    outputs: list[str]
    long: list[str]


class Work:
    """The answering of windows by a verb, in any process: pickled, it is the command, and loads the model again.

    Subclasses load it, and say how lines are checked and answered. The command's `long_lines` says what becomes of a
    line that is too long, and `json` in which form lines are answered.
    """

    keys = ("source", "translations")  # the names of a line and of its outputs in JSON
    _seed: int | None = None  # of what is drawn
    _seed_note = ""  # about a seed that nobody has given

    def __init__(self, command: Any):
        self._command = command

    def __reduce__(self) -> tuple:
        return type(self), (self._command,)

    def seeded(self) -> None:
        """Give the command's decoding a seed where it draws without one: one for all windows, in all processes."""
        given = self._command.generation
        self._command.generation = config = given.seeded()
        self._seed = config.seed if config.samples else None
        if config.seed != given.seed and not (self._command.quiet or self._command.json):
            self._seed_note = seed_note(config.seed)

    def tell_seed(self) -> None:
        """Tell a seed that was drawn, once: in front of the first text that comes from it."""
        if self._seed_note:
            tell(f"toolkit: {self._seed_note}")
        self._seed_note = ""

    def _check(self, line: str, cut: bool = False) -> object:
        """Raises LengthError for a line that is too long. cut: what is left of one, which may need more room."""
        raise NotImplementedError

    def _answers(self, window: Window, cut: Sequence[int] = ()) -> list[str]:
        """Give the output of every line of a window whose lines fit. cut: the places of those that were cut off."""
        raise NotImplementedError

    def __call__(self, window: Window) -> Answer:
        """Answer the lines that fit; those that do not are refused by the model, cut off, or skipped."""
        policy, lines = self._command.long_lines, window.lines
        if policy == "refuse":
            return Answer(self._answers(window), [])
        long = [place for place, line in enumerate(lines) if not self._fits(line)]
        names = [window.where(place + 1) for place in long]
        if policy == "truncate":
            whole = list(lines)
            for place in long:
                whole[place] = self._cut(lines[place])
            return Answer(self._answers(window._replace(lines=whole), long), names)
        outputs, begin = [], 0
        for place in [*long, len(lines)]:
            outputs += self._answers(window.part(begin, place)) if place > begin else []
            for line in lines[place : place + 1]:
                outputs.append(self._json(line, [], "skipped") if self._command.json else "")
            begin = place + 1
        return Answer(outputs, names)

    def _json(self, line: str, outputs: Iterable[Any], mark: str = "") -> str:
        """Write a line and its outputs as JSON. mark: "skipped", "truncated" or nothing."""
        line_key, outputs_key = self.keys
        found = [each.to_dict() for each in outputs]
        marks = {mark: True} if mark else {}
        if found and self._seed is not None:
            marks["seed"] = self._seed
        return json_text({line_key: line, outputs_key: found, **marks})

    def _fits(self, line: str, cut: bool = False) -> bool:
        with suppress(LengthError):
            if len(line) <= LONGEST_LINE:
                self._check(line, cut)
                return True
        return False

    def _cut(self, line: str) -> str:
        """Keep the longest beginning that fits, to the end of a word where one does."""
        line = line[:LONGEST_LINE]
        words = [found.start() for found in re.finditer(r"\s+|$", line)]
        for ends in words, range(1, words[0] + 1):  # where a beginning may end, rising
            count = bisect_left(ends, True, key=lambda end: not self._fits(line[:end], cut=True))
            if count and ends[count - 1]:
                return line[: ends[count - 1]]
        return ""

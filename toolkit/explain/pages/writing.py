"""How texts and numbers are written, wherever a page is shown: cells of a terminal, digits, what fits."""

import math
import unicodedata
from collections.abc import Callable, Iterator

import numpy as np

from toolkit.display import visible
from toolkit.functional.arrays import Array

MOST_COLUMNS, MOST_ROWS = 12, 16  # of an array of numbers
ELLIPSIS = "…"

STATES = {"kept": "", "dropped": "✗", "ended": "■", "chosen": "★"}  # of a branch of a tree, each with its mark

_HUGE = 1e7
_JOINERS = ("Mn", "Mc", "Me", "Cf")


def cells(text: str) -> int:
    """How many cells of a terminal a text takes, as the C library's wcwidth counts them.

    Marks above and below a letter (ँ, ु, the virama) take none, marks beside it (ा, ी) one, a Chinese character two.
    """
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if character < "\u0300":
        return int(character >= " ")
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clipped(text: str, most: int) -> str:
    """The text, or the beginning of it and "…", in at most `most` cells. No letter is parted from its marks."""
    if cells(text) <= most:
        return text
    return _beginning(text, most - 1) + ELLIPSIS * (most > 0)


def _beginning(text: str, most: int) -> str:
    """As many letters as `most` cells take."""
    end = used = 0
    for letter in _letters(text):
        used += cells(letter)
        if used > most:
            break
        end += len(letter)
    return text[:end]


def _letters(text: str) -> Iterator[str]:
    """Each character with the marks that follow it."""
    begin = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or unicodedata.category(text[index]) not in _JOINERS:
            yield text[begin:index]
            begin = index


def padded(text: str, width: int, right: bool = False) -> str:
    """The text in `width` cells, clipped or filled up with spaces; right: at the right end of them."""
    text = clipped(text, width)
    space = " " * (width - cells(text))
    return space + text if right else text + space


def wrapped(text: str, width: int, indent: str = "", more: str = "") -> list[str]:
    """The lines of a text of at most `width` cells, broken at spaces where they must be.

    indent: what every line begins with; more: what a continued line has behind that.
    """
    return [indent + line for each in text.split("\n") for line in _wrapped_line(each, width - cells(indent), more)]


def _wrapped_line(line: str, width: int, more: str) -> Iterator[str]:
    line = visible(line.replace("\t", "    "))
    while cells(line) > width:
        head = _beginning(line, width)
        lead = len(head) - len(head.lstrip())
        if line[len(head)] != " " and " " in head[lead + len(more) :]:
            head = head[: head.rindex(" ")]
        head = head or line[:1]
        yield head.rstrip()
        line = more + line[len(head) :].lstrip()
        if cells(more) >= width - 1:
            more = ""
    yield line.rstrip()


def figures(values: Array, digits: int) -> Callable[[float], str]:
    """How the numbers of an array are written: alike, with so many decimals; in powers of ten where those show nothing.

    An array whose numbers are all too small for the decimals, or one of which is 10^7 or more, is written as 1.000e-07.
    """
    values = np.asarray(values)
    if not np.issubdtype(values.dtype, np.floating):
        return lambda value: str(int(value))
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    power = sizes.size and (sizes.max() < 0.5 * 10.0**-digits or sizes.max() >= _HUGE)
    return lambda value: written(value, digits, "e" if power else "f")


def written(value: float, digits: int, kind: str = "f") -> str:
    """A number to so many decimals; "0.000" has no sign, and what is no number is ∞ or nan."""
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}{kind}}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def probability(value: float) -> str:
    """A probability to three decimals; one that is not 0 does not read so."""
    return "<0.001" if 0 < value < 0.0005 else written(value, 3)


def shape_of(values: Array) -> str:
    """The shape as it is read in code: "(3, 4)", "(4,)"."""
    return str(tuple(np.shape(values)))


def sentences(*notes: str) -> str:
    """Notes one after the other, those that are there, each with an end."""
    return " ".join(each if each.rstrip()[-1] in ".!?:।…" else f"{each}." for each in notes if each.strip())


def left_out(shown: int, total: int, what: str) -> str:
    """A sentence on what does not fit; empty where all of it does."""
    return f"{total - shown} of {total} {what} are not shown." if shown < total else ""

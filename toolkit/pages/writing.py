"""The writing of tokens, texts and numbers, for every reader: cells and colours of a terminal, digits, what fits."""

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from toolkit.display import visible
from toolkit.functional.arrays import Array
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.tokenizer import LOST

MOST_COLUMNS, MOST_ROWS = 12, 16  # of an array of numbers
ELLIPSIS, SPACE = "…", "␣"
LONGEST_LABEL = 16  # cells of a token's name

STATES = {"kept": "", "dropped": "✗", "ended": "■", "chosen": "★"}  # of a branch of a tree, each with its mark

Paint = Callable[..., str]  # (text, style) -> text, in a terminal
BOLD, DIM, RED, GREEN, BLUE = "1", "2", "31", "32", "36"
# The colour map viridis, dark to bright, in the 256 colours of a terminal: both grounds are set, so that it looks alike
# on a light and on a dark one.
_VIRIDIS = (53, 54, 60, 24, 30, 36, 77, 113, 148, 220)

_HUGE = 1e7
_JOINERS = ("Mn", "Mc", "Me", "Cf")
_NAMES = {" ": SPACE, "\n": "↵", "\t": "⇥"}
_CIRCLE = "◌"  # what a mark stands on that has no letter


def labels(tokenizer: Tokenizer, ids: Iterable[int]) -> list[str]:
    """Name every id: "␣boy", "</s>", "<E0 A4>" for bytes that are no character, "◌ा" for a mark alone.

    A space is ␣. Ids with the same name have their number behind it, so that names tell ids apart. Raises IndexError
    for an id outside the vocabulary.
    """
    ids = [int(each) for each in ids]
    names = {each: _name(tokenizer, each) for each in set(ids)}
    times = Counter(names.values())
    return [f"{names[each]}#{each}" if times[names[each]] > 1 else names[each] for each in ids]


def _name(tokenizer: Tokenizer, token_id: int) -> str:
    content = tokenizer.surface(token_id)
    if content in (b"", LOST):
        return clipped(tokenizer.piece(token_id), LONGEST_LABEL)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return clipped(f"<{content.hex(' ').upper()}>", LONGEST_LABEL)
    name = "".join(_NAMES.get(each) or _seen(each) for each in text)
    return clipped(_CIRCLE + name if unicodedata.category(name[0]).startswith("M") else name, LONGEST_LABEL)


def _seen(character: str) -> str:
    """Give a character, or its number if nobody could see it."""
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zs", "Zl", "Zp")
    return f"<U+{ord(character):04X}>" if hidden else character


def paint(text: str, style: str) -> str:
    """Put a text into a style of ECMA-48, such as "1" for bold."""
    return f"\033[{style}m{text}\033[0m"


def plain(text: str, style: str) -> str:
    """Leave the text as it is."""
    return text


def ground(share: float) -> str:
    """Choose the style of a cell of a map, from 0 (nothing) to 1 (the largest weight)."""
    step = min(int(share * len(_VIRIDIS)), len(_VIRIDIS) - 1)
    return f"38;5;{231 if step < 6 else 16};48;5;{_VIRIDIS[step]}"


def cells(text: str) -> int:
    """Count the cells of a terminal that a text takes, as the C library's wcwidth does.

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
    """Cut a text to at most `most` cells, with "…" at its end. No letter is parted from its marks."""
    if cells(text) <= most:
        return text
    return _beginning(text, most - 1) + ELLIPSIS * (most > 0)


def _beginning(text: str, most: int) -> str:
    """Take the letters that fit into `most` cells."""
    end = used = 0
    for letter in _letters(text):
        used += cells(letter)
        if used > most:
            break
        end += len(letter)
    return text[:end]


def _letters(text: str) -> Iterator[str]:
    """Cut a text into characters, each with the marks that follow it."""
    begin = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or unicodedata.category(text[index]) not in _JOINERS:
            yield text[begin:index]
            begin = index


def padded(text: str, width: int, right: bool = False) -> str:
    """Clip a text to `width` cells, or fill it up with spaces; right: with the text at the right end."""
    text = clipped(text, width)
    space = " " * (width - cells(text))
    return space + text if right else text + space


def wrapped(text: str, width: int, indent: str = "", more: str = "") -> list[str]:
    """Break a text into lines of at most `width` cells, at spaces where there are any.

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
    """Choose one form for the numbers of an array: `digits` decimals, or powers of ten where those show nothing.

    An array whose numbers are all too small for the decimals, or one of which is 10^7 or more, is written as 1.000e-07.
    """
    values = np.asarray(values)
    if not np.issubdtype(values.dtype, np.floating):
        return lambda value: str(int(value))
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    power = sizes.size and (sizes.max() < 0.5 * 10.0**-digits or sizes.max() >= _HUGE)
    return lambda value: written(value, digits, "e" if power else "f")


def written(value: float, digits: int, kind: str = "f") -> str:
    """Write a number with `digits` decimals; "0.000" has no sign, and what is no number is ∞ or nan."""
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}{kind}}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def probability(value: float) -> str:
    """Write a probability with three decimals; one that is not 0 does not read so."""
    return "<0.001" if 0 < value < 0.0005 else written(value, 3)


def sentences(*notes: str) -> str:
    """Join the notes that are not empty, each with an end."""
    return " ".join(each if each.rstrip()[-1] in ".!?:।…" else f"{each}." for each in notes if each.strip())


def left_out(shown: int, total: int, what: str) -> str:
    """Write a sentence on what does not fit; empty where all of it does."""
    return f"{total - shown} of {total} {what} are not shown." if shown < total else ""

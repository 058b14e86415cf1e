"""Text as a terminal may have it: what would steer it, or break a line, is written out as Python writes it (\\x1b)."""

import json
import os
import re
import sys
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from typing import Any

LONGEST_SENTENCE = 500  # characters
_LONGEST_REPR, _LONGEST_FACT = 300, 48

# Control characters of both sets, line and paragraph separators, halves of surrogate pairs, marks and overrides of
# direction, and what is never seen: annotations, tags, the byte order mark. The joiners that Devanagari needs stay.
_STEERING = (
    "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_IN_A_LINE = re.compile(f"[{_STEERING}]")
_IN_A_TEXT = re.compile(rf"(?![\n\t])[{_STEERING}]")


def escaped(text: str) -> str:
    """Write out what would steer a terminal or end the line."""
    return _IN_A_LINE.sub(_escape, text)


def escaped_text(text: str) -> str:
    """Write out what would steer a terminal; line feeds and tabs stay."""
    return _IN_A_TEXT.sub(_escape, text)


def visible(text: str) -> str:
    """Put U+FFFD for what would steer a terminal or end the line, so that the text keeps its length."""
    return _IN_A_LINE.sub("\ufffd", text)


def sentence(text: str) -> str:
    """Make one line of at most 500 characters; what is longer loses its middle, for the end says what to do."""
    line = escaped(text)
    if len(line) <= LONGEST_SENTENCE:
        return line
    half = LONGEST_SENTENCE // 2
    return f"{line[:half]}…{line[half + 1 - LONGEST_SENTENCE :]}"


def counted(number: int, what: str = "line") -> str:
    """Write a number with what it counts: "1 line", "2 lines"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def meant(word: str, names: Iterable[str]) -> str:
    """Guess which name a word was meant to be: the only one that begins with it, or the most similar; else ""."""
    from difflib import get_close_matches  # here, because it is needed for mistakes only

    word, names = word.lower(), list(names)
    begun = [name for name in names if word and name.startswith(word)]
    return begun[0] if len(begun) == 1 else next(iter(get_close_matches(word, names, n=1, cutoff=0.7)), "")


def no_setting(name: str, near: str) -> TypeError:
    """Make the error for a keyword that is no setting, and is like the name `near`, or like none ("")."""
    return TypeError(f"there is no setting {name!r}" + (f": did you mean {near!r}?" if near else ""))


def short_repr(self: object) -> str:
    """Write an object in one line, as its `__repr__`: its class, and in short what its public attributes are.

    Of a dataclass or named tuple, those that are not as by default. Arrays are written by type and shape, long lists by
    their number of items.
    """
    names, defaults = getattr(self, "_fields", None), getattr(self, "_field_defaults", {})
    if names is None and (own := getattr(self, "__dataclass_fields__", None)):
        names, defaults = tuple(own), {name: field.default for name, field in own.items()}
    if names is None:
        names = [name for name in getattr(self, "__dict__", ()) if not name.startswith("_")]
    values = ((name, getattr(self, name, None)) for name in names)
    facts = [f"{name}={_brief(value)}" for name, value in values if not _is(value, defaults.get(name, self))]
    while len(text := f"{type(self).__name__}({', '.join(facts)})") > _LONGEST_REPR:
        facts[-2:] = ["…"]
    return text


def _is(value: object, default: object) -> bool:
    kinds = str | int | float | tuple
    return value is default or (isinstance(value, kinds) and type(value) is type(default) and value == default)


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None or isinstance(value, int):
        return repr(value)
    if isinstance(value, str | bytes | os.PathLike):
        text = repr(value if isinstance(value, str | bytes) else os.fspath(value))
        return text if len(text) <= _LONGEST_FACT else f"{text[: _LONGEST_FACT - 2]}…{text[-1]}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{tuple(value.shape)}"
    if isinstance(value, list | tuple | dict | set | frozenset):
        plain = all(isinstance(each, str | int | float) for each in value) and not isinstance(value, dict)
        if not value or (plain and len(text := repr(value)) <= _LONGEST_FACT):
            return text if value else repr(value)
        return counted(len(value), "item")
    return getattr(value, "__name__", type(value).__name__)


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = (0,)) -> list[str]:
    """Lay out the rows of a table as lines; columns whose numbers are in `left` have their cells at the left."""
    rows = [[escaped(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (
        [cell.ljust(width) if place in left else cell.rjust(width) for place, (cell, width) in enumerate(pairs)]
        for pairs in (zip(row, widths, strict=True) for row in rows)
    )
    return ["  ".join(cells).rstrip() for cells in padded]


def json_text(value: Any) -> str:
    """Write a value as one line of JSON that reads as it is written, but for what would steer a terminal."""
    return _IN_A_LINE.sub(lambda found: json.dumps(found[0])[1:-1], json.dumps(value, ensure_ascii=False))


def tell(line: str) -> None:
    """Print a line on standard error; where that is closed or full, nobody wanted to know.

    A notebook shows what is on standard error as if it were an error: there it goes to standard output.
    """
    stream = sys.stdout if in_notebook() else sys.stderr
    if stream is not None:
        with suppress(OSError):
            print(escaped(line), file=stream, flush=True)


def progress_bar(hidden: bool, **settings: Any) -> Any:
    """Make a progress bar of `tqdm`, unless hidden: in a notebook, or on standard error if that is a terminal."""
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # its thread would be forked with the workers of training
    if in_notebook():
        from tqdm.auto import tqdm as widget

        return widget(disable=hidden, **settings)
    hidden = hidden or sys.stderr is None
    return tqdm(file=sys.stderr, disable=hidden or None, **settings)  # `None`: where it is no terminal


def in_notebook() -> bool:
    """Say if this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()

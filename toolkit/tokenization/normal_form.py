"""Text as every tokenizer takes it: Unicode normal form C, without halves of surrogate pairs."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Set
from itertools import groupby

import numpy as np

from toolkit.errors import ConfigError, DataError

_SURROGATE = re.compile("[\ud800-\udfff]")


# Wherever a letter has more marks than any has in a stream-safe text (30: UAX 15, section 13), and lines of dashes: no
# mark is a word character. Python would sort such marks in time that grows with the square of their number.
_LONG_RUN = re.compile(r"[^\w\s]{31,}")


def normal_form(text: str) -> str:
    """Compose a text as Unicode normal form C has it, so that what looks alike is alike; in nearly linear time."""
    if is_normal_form(text):
        return text
    return unicodedata.normalize("NFC", _LONG_RUN.sub(_decomposed, text))


def is_normal_form(text: str) -> bool:
    """Say whether `normal_form` gives the text back."""
    return text.isascii() or unicodedata.is_normalized("NFC", text)


def _decomposed(run: re.Match[str]) -> str:
    """Decompose a part of a text (normal form D): marks in the order of their classes, within a class as they came."""
    letters = "".join(unicodedata.normalize("NFD", each) for each in run[0])
    groups = groupby(letters, lambda each: unicodedata.combining(each) > 0)  # letters and marks in turns
    return "".join(each for _, group in groups for each in sorted(group, key=unicodedata.combining))


def check_text(value: object, name: str) -> None:
    """Check that a value is a text. Raises DataError, which calls the value by its `name`."""
    if not isinstance(value, str):
        shown = " ".join(f"{value!r:.40}".split())
        raise DataError(f"{name} is {shown} ({type(value).__name__}), not a text: make it one, or leave it out")


def text_list(given: Iterable[str], name: str, item: Callable[[int], str]) -> list[str]:
    """List texts that come in any iterable with an order: a list, a generator, an array, a column of a table.

    name, item: the words for them in an error, and for the one of a number from 1.

    Raises ConfigError for what is no such iterable, a text alone too, and DataError for an item that is no text.
    """
    if isinstance(given, str):
        raise ConfigError(f"{name} are given as a list: [{given!r:.60}], not {given!r:.60}")
    try:
        if isinstance(given, bytes | bytearray | Mapping | Set):
            raise TypeError
        items = iter(given)
    except TypeError:
        raise ConfigError(f"{name} are given as a list of texts, not {given!r:.60}") from None
    texts = list(items)
    for number, text in enumerate(texts, start=1):
        check_text(text, item(number))
    return texts


def utf8_bytes(text: str) -> np.ndarray:
    """View a text as its bytes, (N,) uint8, as it stands. Raises DataError for a lone surrogate."""
    return np.frombuffer(_encoded(text, "utf-8"), np.uint8)


def code_points(text: str) -> np.ndarray:
    """View a text as its code points, (N,) uint8 or uint32, as it stands. Raises DataError for a lone surrogate."""
    return utf8_bytes(text) if text.isascii() else np.frombuffer(_encoded(text, "utf-32-le"), "<u4")


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        refuse_surrogates([text], error)
        raise


def refuse_surrogates(texts: Iterable[str], cause: Exception) -> None:
    """Raise DataError for half of a surrogate pair: an encoder says only that some text cannot be converted."""
    for text in texts:
        found = _SURROGATE.search(text)
        if found:
            raise DataError(
                f"character {found.start() + 1} of {text!r:.60} is half of a surrogate pair, which is not text: "
                "give the text in UTF-8"
            ) from cause
